//! Times and what is measured in them.

use abi::{Itimerspec, Itimerval, Rusage, Timespec, Timeval, Timex, Timezone, Tms, Utimbuf};

use super::{Printer, Show, Updated, shown};

impl Show for Timespec {
    const UPDATED: Updated = Updated::Left;
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!("{{tv_sec={}, tv_nsec={}}}", self.sec, self.nsec));
    }
}

impl Show for Timeval {
    const UPDATED: Updated = Updated::Left;
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!("{{tv_sec={}, tv_usec={}}}", self.sec, self.usec));
    }
}

shown! {
    Itimerspec { it_interval: s interval, it_value: s value }
    Itimerval { it_interval: s interval, it_value: s value }
    Timezone { tz_minuteswest: n minuteswest, tz_dsttime: n dsttime }
    Utimbuf { actime: n actime, modtime: n modtime }
    Tms { tms_utime: n utime, tms_stime: n stime, tms_cutime: n cutime, tms_cstime: n cstime }
    Rusage { ru_utime: s utime, ru_stime: s stime; "..." }
}

impl Show for Timex {
    const UPDATED: Updated = Updated::AfterOnly;
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!(
            "{{modes={}, offset={}, freq={}, maxerror={}, esterror={}, status={}, ...}}",
            self.modes, self.offset, self.freq, self.maxerror, self.esterror, self.status
        ));
    }
}
