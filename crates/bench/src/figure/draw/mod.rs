//! A figure as one picture: SVG that needs nothing but itself.

mod curves;

use super::{Figure, Measurements, Panel, Shape};
use crate::compare::Facts;
use crate::compare::page::axis::{HEIGHT, LEFT, RIGHT, WIDTH};
use crate::compare::page::{STYLE, bars, class, escape, lines};
use std::fmt::Write as _;

/// Heights of the head, of a panel's title, of a row of the legend, and of the foot, in units of the view box.
const HEAD: f64 = 34.0;
const TITLE: f64 = 26.0;
const ROW: f64 = 20.0;
const FOOT: f64 = 62.0;

/// How wide a letter is, about.
const LETTER: f64 = 7.6;

/// Letters of a line of the foot; what is longer is cut off, and is in the document beside the picture.
const LETTERS_MAX: usize = 128;

/// The plot of a panel; `None` if nothing of it was measured.
fn plot(panel: &Panel, measurements: &Measurements) -> Option<String> {
    let metric = *panel.metrics.first()?;
    let groups = measurements.groups(panel);
    match panel.shape {
        Shape::Lines { across, is_log } => curves::over_points(panel, measurements, across, is_log),
        Shape::Curve => curves::over_throughput(panel, measurements, metric),
        Shape::Bars { across } => bars::draw(metric, &escape(across), &groups.iter().collect::<Vec<_>>()),
        Shape::AtPeakOf(other) => {
            let across = format!("workload, at the most throughput of {other}");
            bars::draw(metric, &across, &groups.iter().collect::<Vec<_>>())
        }
        Shape::Distribution(_) => lines::draw(groups.first()?),
    }
}

/// What each line or bar of a panel is: its name and class.
fn legend(panel: &Panel) -> Vec<(String, String)> {
    match panel.shape {
        Shape::Lines { .. } => curves::names(panel),
        _ => panel.protocols.iter().enumerate().map(|(n, name)| ((*name).to_owned(), class(n))).collect(),
    }
}

/// The legend, in rows; and how high it is.
fn draw_legend(panel: &Panel, top: f64) -> (String, f64) {
    let has_bars = matches!(panel.shape, Shape::Bars { .. } | Shape::AtPeakOf(_));
    let (mut out, mut x, mut y) = (String::new(), LEFT, top + ROW / 2.0);
    for (name, class) in legend(panel) {
        let width = 44.0 + LETTER * name.chars().count() as f64;
        if x + width > RIGHT && x > LEFT {
            (x, y) = (LEFT, y + ROW);
        }
        let _ = if has_bars {
            write!(
                out,
                "<rect class=\"swatch {class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\"/>",
                y - 6.0
            )
        } else {
            let end = x + 26.0;
            write!(
                out,
                "<line class=\"line {class}\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{end:.1}\" y2=\"{y:.1}\"/>"
            )
        };
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 32.0, y + 4.0, escape(&name));
        x += width;
    }
    (out, y + ROW / 2.0 - top)
}

/// The beginning of a text that may be too long for a line.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

/// The figure.
#[must_use]
pub fn svg(figure: &Figure, measurements: &Measurements, facts: &Facts) -> String {
    let mut out = String::new();
    let mut y = HEAD;
    for panel in &figure.panels {
        let title = escape(panel.title);
        let _ = write!(out, "<text class=\"load\" x=\"{LEFT}\" y=\"{:.1}\">{title}</text>", y + 18.0);
        y += TITLE;
        let Some(drawing) = plot(panel, measurements) else {
            let _ = write!(out, "<text x=\"{LEFT}\" y=\"{:.1}\">not measured</text>", y + 14.0);
            y += ROW * 1.5;
            continue;
        };
        let _ = write!(out, "<g transform=\"translate(0 {y:.1})\">{drawing}</g>");
        y += HEIGHT;
        let (legend, height) = draw_legend(panel, y);
        out.push_str(&legend);
        y += height + 12.0;
    }
    if figure.panels.is_empty() {
        let _ = write!(out, "<text x=\"{LEFT}\" y=\"{:.1}\">not reproduced</text>", y + 14.0);
        y += ROW * 1.5;
    }
    let Facts { commit, machine, command, load, .. } = facts;
    for (line, text) in
        [format!("Commit {commit}, {machine}"), load.clone(), command.clone()].iter().enumerate()
    {
        let y = y + 16.0 * (line as f64 + 1.0);
        let _ = write!(out, "<text class=\"tick\" x=\"12\" y=\"{y:.1}\">{}</text>", escape(&cut(text)));
    }
    let height = y + FOOT;
    let heading = escape(&figure.heading());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{heading}\">\n<style>\n{STYLE}</style>\n<rect width=\"{WIDTH}\" height=\"{height:.0}\" \
         fill=\"var(--paper)\"/>\n<text class=\"title\" x=\"12\" y=\"24\">{heading}</text>\n{out}\n</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Sample;
    use crate::figure::{catalogue, chapter, page};
    use syros_experiment::Measured;

    /// Everything took as long as its protocol's name is.
    fn measurements(figures: &[Figure]) -> Measurements {
        let mut measurements = Measurements::default();
        for cell in figures.iter().flat_map(Figure::cells) {
            if !measurements.has(&cell) {
                let mut latency = Measured::default();
                (0..100).for_each(|n| latency.record(cell.protocol.len() as u64 * 1_000_000 + n));
                let kinds = ["read", "update"].map(|kind| (kind, latency.clone())).into();
                let mut sample = Sample::default();
                (sample.operations, sample.seconds) = (100 * cell.load.clients as u64, 1.0);
                (sample.latency, sample.kinds) = (latency, kinds);
                measurements.add(&cell, sample);
            }
        }
        measurements
    }

    #[test]
    fn every_figure_is_drawn_well_formed_and_says_where_it_is_from() {
        let figures = catalogue();
        let measurements = measurements(&figures);
        let command = "syros-lab bench figure 'a<b>&\"c\"'".to_owned();
        let facts = Facts { command, commit: "abcdef".to_owned(), ..Facts::default() };
        for figure in &figures {
            let text = svg(figure, &measurements, &facts);
            let document =
                roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", figure.name));
            let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
            assert!(texts.iter().any(|text| text.contains("abcdef")), "{}", figure.name);
            assert!(texts.contains(&facts.command.as_str()), "{}", figure.name);
            assert!(!text.contains("NaN") && !text.contains("inf\""), "{}: every number is one", figure.name);
            for panel in &figure.panels {
                assert!(texts.contains(&panel.title), "{}: {}", figure.name, panel.title);
            }
            // Nobody counted which reads were fast.
            let has_more = figure.name == "ionia-12" || figure.name == "ionia-13";
            assert_eq!(text.contains(">not measured<"), has_more, "{}", figure.name);
            let chapter = chapter(figure, &measurements, "x.svg");
            assert!(chapter.contains(figure.statement) && chapter.starts_with("## "), "{chapter}");
        }
        let text = page(&figures, &measurements, &facts);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        roxmltree::Document::parse_with_options(&text, options).unwrap();
    }

    #[test]
    fn what_was_not_measured_is_no_plot() {
        for figure in catalogue() {
            let text = svg(&figure, &Measurements::default(), &Facts::default());
            assert!(!text.contains("<polyline") && !text.contains("class=\"bar"), "{}", figure.name);
        }
    }
}
