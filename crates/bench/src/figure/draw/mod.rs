//! A figure as one picture: SVG that needs nothing but itself.

mod curves;

use super::{Figure, Outcome, Panel, Shape};
use crate::compare::Facts;
use crate::compare::page::axis::{HEIGHT, LEFT, RIGHT, WIDTH};
use crate::compare::page::{STYLE, bars, class, escape, lines};
use std::fmt::Write as _;

/// Heights of the head, of a panel's title, of a row of the legend, and of the foot, in units of the view box.
const HEAD: f64 = 34.0;
const TITLE: f64 = 26.0;
const ROW: f64 = 20.0;
const FOOT: f64 = 46.0;

/// How wide a letter is, about.
const LETTER: f64 = 7.6;

/// Letters of a line of the foot; what is longer is cut off, and is in the document beside the picture.
const LETTERS_MAX: usize = 150;

/// The plot of a panel; `None` if nothing of it was measured.
fn plot(panel: &Panel, outcome: &Outcome) -> Option<String> {
    let metric = *panel.metrics.first()?;
    let groups = outcome.groups(panel);
    match panel.shape {
        Shape::Lines { across, is_log } => curves::over_points(panel, outcome, across, is_log),
        Shape::Curve => curves::over_throughput(panel, outcome, metric),
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
pub fn svg(figure: &Figure, outcome: &Outcome, facts: &Facts) -> String {
    let mut out = String::new();
    let mut y = HEAD;
    for panel in &figure.panels {
        let title = escape(panel.title);
        let _ = write!(out, "<text class=\"load\" x=\"{LEFT}\" y=\"{:.1}\">{title}</text>", y + 18.0);
        y += TITLE;
        let Some(drawing) = plot(panel, outcome) else {
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
    for (line, text) in [format!("{load}. Commit {commit}, {machine}."), command.clone()].iter().enumerate() {
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
