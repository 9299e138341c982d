//! Pictures of results, as SVG that we write ourselves: a few rectangles and lines need no library.
//!
//! Main function: [`svg`]. Bars of ratios on a logarithmic axis; for a single workload the runs themselves, each a
//! point, with the quartiles.

use std::fmt::Write;

use crate::report::{Row, amount, digits, rows};
use crate::results::{Cell, Results};
use crate::statistics::Spread;

/// Colours that people who see few colours tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#555555"];

const WIDTH: f64 = 900.0;
/// Where the axis begins: names stand left of it.
const LEFT: f64 = 210.0;
/// What is left free at the right, for the last number.
const RIGHT: f64 = 80.0;
const BAR: f64 = 11.0;
const HEAD: f64 = 60.0;

/// The picture that suits the results.
pub(crate) fn svg(results: &Results) -> String {
    let rows = rows(results, false);
    let workloads: std::collections::BTreeSet<_> = results.cells.iter().map(|cell| &cell.workload).collect();
    if workloads.len() == 1 { distribution(results, &rows) } else { bars(results, &rows) }
}

/// A logarithmic axis from left to right.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Over all the values, to whole powers of ten.
    fn over(values: impl Iterator<Item = f64>) -> Axis {
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        if low.is_finite() { Axis { low, high: high.max(low + 1.0) } } else { Axis { low: 0.0, high: 1.0 } }
    }

    fn x(&self, value: f64) -> f64 {
        let part = (value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low);
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// The powers of ten on it.
    fn powers(&self) -> impl Iterator<Item = f64> {
        let (low, high) = (self.low, self.high);
        std::iter::successors(Some(low), |power| Some(power + 1.0))
            .take_while(move |power| *power <= high)
            .map(|power| 10f64.powf(power))
    }
}

fn bars(results: &Results, rows: &[Row<'_>]) -> String {
    let shown: Vec<&Row<'_>> =
        rows.iter().filter(|row| row.cells.iter().flatten().any(|cell| cell.ratio.is_some())).collect();
    let ratios =
        shown.iter().flat_map(|row| &row.cells).flatten().filter_map(|cell| Some(cell.ratio?.median));
    let axis = Axis::over(ratios.chain([1.0]));
    let lines = |row: &Row<'_>| count(row.cells.iter().flatten().filter(|cell| cell.ratio.is_some()).count());
    let height = HEAD + shown.iter().map(|row| lines(row) * BAR + 6.0).sum::<f64>() + 30.0;
    let mut picture = Picture::new(height, "Times native (logarithmic)");
    picture.legend(results);
    picture.grid(&axis, height, |value| format!("{}x", digits_of_power(value)));
    let mut y = HEAD;
    for row in shown {
        picture.text(LEFT - 6.0, y + lines(row) * BAR / 2.0 + 4.0, "end", "#000", &row.title);
        for (place, cell) in row.cells.iter().enumerate() {
            let Some((cell, ratio)) = cell.and_then(|cell| Some((cell, cell.ratio?))) else { continue };
            let (from, to) = (axis.x(1.0).min(axis.x(ratio.median)), axis.x(1.0).max(axis.x(ratio.median)));
            picture.bar(from, y, (to - from).max(1.0), colour(place));
            picture.line(axis.x(ratio.low), y + BAR / 2.0 - 0.5, axis.x(ratio.high), "#000");
            let tilde = if cell.noisy { "~" } else { "" };
            let label = format!("{tilde}{}", digits(ratio.median));
            picture.text(to.max(axis.x(ratio.high)) + 4.0, y + BAR - 2.0, "start", "#333", &label);
            y += BAR;
        }
        y += 6.0;
    }
    picture.end()
}

/// The height of one place in a picture of points.
const BAND: f64 = 34.0;

fn distribution(results: &Results, rows: &[Row<'_>]) -> String {
    let cells: Vec<(usize, &str, &Cell)> = rows
        .iter()
        .flat_map(|row| {
            row.cells.iter().enumerate().map(move |(place, cell)| (place, row.title.as_str(), *cell))
        })
        .filter_map(|(place, title, cell)| Some((place, title, cell?)))
        .collect();
    let axis = Axis::over(cells.iter().flat_map(|(_, _, cell)| &cell.runs).copied());
    let height = HEAD + count(cells.len()) * BAND + 30.0;
    let title = rows.first().map_or(String::new(), |row| format!("{}: each run (logarithmic)", row.title));
    let mut picture = Picture::new(height, &title);
    let unit = cells.first().map_or("ns", |(_, _, cell)| cell.unit.as_str());
    picture.grid(&axis, height, |value| amount(value, unit));
    for (line, (place, title, cell)) in cells.iter().enumerate() {
        let y = HEAD + count(line) * BAND + BAND / 2.0;
        let one_cpu = if title.ends_with("one CPU") && cell.pinned.is_some() { ", one CPU" } else { "" };
        picture.text(
            LEFT - 6.0,
            y + 4.0,
            "end",
            "#000",
            &format!("{}{one_cpu}", results.places.get(*place).map_or("", |place| place.name.as_str())),
        );
        if let Some(spread) = Spread::of(&cell.runs) {
            picture.bar(
                axis.x(spread.low),
                y - BAR / 2.0,
                (axis.x(spread.high) - axis.x(spread.low)).max(1.0),
                "#dddddd",
            );
            picture.bar(axis.x(spread.median) - 1.0, y - BAR / 2.0, 2.0, "#000000");
        }
        for (number, run) in cell.runs.iter().enumerate() {
            // Spread over some lines so that equal runs show; always in the same way.
            let jitter = count(number * 5 % 7) - 3.0;
            picture.point(axis.x(*run), y + jitter * 2.5, colour(*place));
        }
        let median = amount(cell.summary.median, &cell.unit);
        picture.text(axis.x(cell.summary.max) + 8.0, y + 4.0, "start", "#333", &median);
    }
    picture.end()
}

fn colour(place: usize) -> &'static str {
    COLOURS.get(place % COLOURS.len()).copied().unwrap_or("#555555")
}

fn digits_of_power(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
}

fn count(number: usize) -> f64 {
    number as f64
}

/// An SVG file in the making.
struct Picture {
    text: String,
}

impl Picture {
    fn new(height: f64, title: &str) -> Picture {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n",
            escaped(title)
        );
        Picture { text }
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(element);
        self.text.push('\n');
    }

    fn legend(&mut self, results: &Results) {
        let mut x = 10.0;
        for (at, place) in results.places.iter().enumerate().filter(|(_, place)| place.name != "native") {
            self.bar(x, 30.0, 10.0, colour(at));
            self.text(x + 14.0, 39.0, "start", "#000", &place.name);
            x += 30.0 + count(place.name.len()) * 6.5;
        }
    }

    fn grid(&mut self, axis: &Axis, height: f64, label: impl Fn(f64) -> String) {
        for power in axis.powers() {
            let (x, bottom) = (axis.x(power), height - 24.0);
            self.push(format_args!(
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#ccc\"/>",
                HEAD - 8.0
            ));
            self.text(x, height - 10.0, "middle", "#333", &label(power));
        }
    }

    fn bar(&mut self, x: f64, y: f64, width: f64, fill: &str) {
        let height = BAR - 2.0;
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        ));
    }

    fn line(&mut self, from: f64, y: f64, to: f64, stroke: &str) {
        self.push(format_args!(
            "<line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\" stroke=\"{stroke}\"/>"
        ));
    }

    fn point(&mut self, x: f64, y: f64, fill: &str) {
        self.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\" fill-opacity=\"0.7\"/>"
        ));
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, fill: &str, text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{text}</text>"
        ));
    }

    fn end(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, results};

    /// Whether tags nest, attributes are quoted and texts escaped: what every reader of XML insists on.
    fn well_formed(text: &str) -> Result<usize, String> {
        let (mut open, mut elements, mut rest) = (Vec::new(), 0, text);
        while let Some(at) = rest.find('<') {
            let between = &rest[..at];
            if between.contains('>')
                || between.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "").contains('&')
            {
                return Err(format!("not escaped: {between}"));
            }
            let end = rest[at..].find('>').ok_or("a tag does not end")? + at;
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                if open.pop() != Some(name) {
                    return Err(format!("</{name}> ends nothing"));
                }
                continue;
            }
            elements += 1;
            if tag.matches('"').count() % 2 == 1 {
                return Err(format!("quotes: {tag}"));
            }
            if let Some(number) = tag.split('"').find(|part| part.contains("NaN") || part.contains("inf")) {
                return Err(format!("no number: {number}"));
            }
            if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap_or(""));
            }
        }
        if open.is_empty() { Ok(elements) } else { Err(format!("{open:?} left open")) }
    }

    #[test]
    fn bars_are_well_formed_and_as_many_as_ratios() {
        let results = results(vec![
            cell("getpid", "native", &[1.0]),
            cell("getpid", "sysemu", &[80.0, 81.0, 82.0]),
            cell("page & <touch>", "sysemu", &[0.9, 1.0, 1.1]),
        ]);
        let picture = svg(&results);
        assert!(well_formed(&picture).expect("well-formed") > 10);
        assert_eq!(picture.matches("fill=\"#e69f00\"").count(), 3, "a legend and two bars: {picture}");
        assert!(picture.contains("page &amp; &lt;touch&gt;"));
    }

    #[test]
    fn a_single_workload_shows_its_runs() {
        let results = results(vec![
            cell("getpid", "native", &[1.0, 1.1]),
            cell("getpid", "sysemu", &[80.0, 81.0, 82.0]),
        ]);
        let picture = svg(&results);
        well_formed(&picture).expect("well-formed");
        assert_eq!(picture.matches("<circle").count(), 5);
    }

    #[test]
    fn odd_values_stay_on_the_paper() {
        let results = results(vec![cell("a", "sysemu", &[0.0, 0.0]), cell("b", "sysemu", &[1e9])]);
        well_formed(&svg(&results)).expect("well-formed");
    }
}
