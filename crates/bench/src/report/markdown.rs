//! The table as Markdown, for the README.

use super::{amount, ratio, rows};
use crate::results::Results;

pub(crate) fn markdown(results: &Results) -> String {
    let mut text =
        format!("Measured by `umlaut bench` {} on {}.\n\n", results.machine.umlaut, results.machine.line());
    text += "| |";
    results.places.iter().for_each(|place| text += &format!(" {} |", place.name));
    text += "\n| --- |";
    results.places.iter().for_each(|_| text += " ---: |");
    text.push('\n');
    for row in rows(results, false) {
        text += &format!("| {} |", row.title);
        for cell in row.cells {
            let shown = cell.map_or_else(String::new, |cell| {
                let value = amount(cell.summary.median, &cell.unit);
                ratio(cell).map_or_else(|| value.clone(), |ratio| format!("{value} ({ratio})"))
            });
            text += &format!(" {shown} |");
        }
        text.push('\n');
    }
    text.push('\n');
    for place in &results.places {
        text += &format!("- {}: {}\n", place.name, place.what);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, results};

    #[test]
    fn every_line_of_the_table_has_its_columns() {
        let text =
            markdown(&results(vec![cell("getpid", "native", &[1.0]), cell("stat", "sysemu", &[7.0, 7.0])]));
        assert!(text.contains("| getpid | 100 ns |  |\n"), "{text}");
        assert!(text.contains("| stat |  | 700 ns (7.00x) |\n"), "{text}");
        let lines = text.lines().filter(|line| line.starts_with('|'));
        assert!(lines.map(|line| line.matches('|').count()).all(|count| count == 4), "{text}");
    }
}
