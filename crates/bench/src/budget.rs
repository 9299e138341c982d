//! How often each workload runs, so that the default set ends in time: what takes long runs less often.
//!
//! Main function: [`fit`]. Neighbours: `rounds` asks before each round, with what the last one took.

use std::time::Duration;

use crate::options::Options;

/// What the default set may take, and `--quick`.
const BUDGET: Duration = Duration::from_secs(280);
const QUICK_BUDGET: Duration = Duration::from_secs(52);

/// None where the user says what to do, or how often.
pub(crate) fn of(options: &Options) -> Option<Duration> {
    let own = options.names.is_empty() && options.runs.is_none();
    own.then_some(if options.quick { QUICK_BUDGET } else { BUDGET })
}

/// Takes rounds from whatever would take longest until the rest fits into the time that is left. `rounds` are those that
/// each is to make in all, `done` those that have been made, `took` is what each took in one. Every workload keeps one.
pub(crate) fn fit(rounds: &mut [u32], done: u32, took: &[Duration], left: Duration) {
    let least = done.max(1);
    loop {
        let ahead = |rounds: u32, took: &Duration| *took * rounds.saturating_sub(done);
        if rounds.iter().zip(took).map(|(rounds, took)| ahead(*rounds, took)).sum::<Duration>() <= left {
            return;
        }
        let can_be_less = rounds.iter_mut().zip(took).filter(|(rounds, _)| **rounds > least);
        match can_be_less.max_by_key(|(rounds, took)| ahead(**rounds, took)) {
            Some((longest, _)) => *longest -= 1,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_takes_longest_runs_less_often() {
        let took = [SECOND, 10 * SECOND, 2 * SECOND];
        let mut rounds = [7, 7, 7];
        fit(&mut rounds, 0, &took, 91 * SECOND);
        assert_eq!(rounds, [7, 7, 7], "all of it fits");
        fit(&mut rounds, 0, &took, 50 * SECOND);
        assert_eq!(rounds, [7, 2, 7]);
        fit(&mut rounds, 2, &took, 10 * SECOND);
        assert_eq!(rounds, [7, 2, 4], "what has been made stays");
    }

    #[test]
    fn everything_runs_once_whatever_it_takes() {
        let mut rounds = [7, 3];
        fit(&mut rounds, 0, &[SECOND, SECOND], Duration::ZERO);
        assert_eq!(rounds, [1, 1]);
        fit(&mut rounds, 1, &[SECOND, SECOND], Duration::ZERO);
        assert_eq!(rounds, [1, 1]);
    }

    #[test]
    fn only_what_the_user_left_open_has_a_budget() {
        let options = |words: &[&str]| {
            use clap::{Args, FromArgMatches};
            let command = Options::augment_args(clap::Command::new("bench").no_binary_name(true));
            Options::from_arg_matches(&command.get_matches_from(words)).expect("they are right")
        };
        assert_eq!(of(&options(&[])), Some(BUDGET));
        assert_eq!(of(&options(&["--quick"])), Some(QUICK_BUDGET));
        assert_eq!(of(&options(&["getpid"])), None);
        assert_eq!(of(&options(&["--runs", "9"])), None);
    }
}
