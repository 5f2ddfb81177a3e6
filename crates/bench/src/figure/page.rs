//! A figure beside what the paper says of it: as a part of a document, and as a page of its own.

use super::table::Table;
use super::{Figure, Judged, Measurements, Panel, Verdict, svg};
use crate::compare::Facts;
use crate::compare::page::{STYLE, escape};
use core::fmt::Write as _;

/// A verdict and its ratio.
fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Holds(ratio) => format!("{ratio:.2}: holds"),
        Verdict::Fails(ratio) => format!("{ratio:.2}: **does not hold**"),
        Verdict::Unknown => "not measured".to_owned(),
    }
}

/// Text in a table of Markdown.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn markdown_row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn markdown_table(panel: &Panel, measurements: &Measurements) -> String {
    let Table { columns, rows } = Table::of(panel, measurements);
    let line = vec!["---:".to_owned(); columns.len()];
    let rows: String = rows.iter().map(|row| markdown_row(row)).collect();
    format!("{}:\n\n{}{}{rows}", panel.title, markdown_row(&columns), markdown_row(&line))
}

/// The part of a document, in Markdown, about a figure whose picture is in a file of this name.
#[must_use]
pub fn chapter(figure: &Figure, measurements: &Measurements, picture: &str) -> String {
    let mut out = format!("## {}\n\n", figure.heading());
    if !figure.panels.is_empty() {
        let _ = writeln!(out, "![{}]({picture})\n", figure.heading());
    }
    let _ = writeln!(out, "**The paper** ({}): {}\n", figure.section, figure.statement);
    let judged = figure.judge(measurements);
    if !judged.is_empty() {
        out.push_str("| the paper's statement | as a ratio | here | |\n|---|---|---|---|\n");
        for Judged { claim, verdict: came, because } in &judged {
            let bound = claim.bound.to_string();
            out.push_str(&markdown_row(&[
                claim.text.to_owned(),
                bound,
                verdict(*came),
                (*because).to_owned(),
            ]));
        }
        out.push('\n');
    }
    for (what, text) in [("Not reproduced", figure.missing), ("What differs", figure.differs)] {
        if !text.is_empty() {
            let _ = writeln!(out, "**{what}**: {text}\n");
        }
    }
    for reason in measurements.reasons(&figure.panels) {
        let _ = writeln!(out, "**Not measured**: {reason}\n");
    }
    if !figure.panels.is_empty() {
        out.push_str("<details><summary>The figures</summary>\n\n");
        for panel in &figure.panels {
            let _ = writeln!(out, "{}", markdown_table(panel, measurements));
        }
        out.push_str("</details>\n\n");
    }
    out
}

fn html_table(caption: &str, columns: &[String], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, row: &[String]| -> String {
        let cells: String = row.iter().map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.iter().map(|row| cells("td", row)).collect();
    format!(
        "<div class=\"wide\"><table><caption>{}</caption>\n<thead>{}</thead>\n<tbody>{body}</tbody></table></div>\n",
        escape(caption),
        cells("th", columns)
    )
}

/// A page of HTML that needs nothing but itself: figures with what the papers say of them.
#[must_use]
pub fn page(figures: &[Figure], measurements: &Measurements, facts: &Facts) -> String {
    let mut body = String::new();
    for figure in figures {
        let paragraph = |what: &str, text: &str| match text {
            "" => String::new(),
            text => format!("<p><b>{what}</b>: {}</p>\n", escape(text)),
        };
        let _ = write!(
            body,
            "<section>\n<h2>{}</h2>\n<figure>{}</figure>\n",
            escape(&figure.heading()),
            svg(figure, measurements, facts)
        );
        body.push_str(&paragraph(&format!("The paper ({})", figure.section), figure.statement));
        let judged = figure.judge(measurements);
        if !judged.is_empty() {
            let columns = ["the paper's statement", "as a ratio", "here", ""].map(str::to_owned);
            let rows: Vec<Vec<String>> = judged
                .iter()
                .map(|Judged { claim, verdict, because }| {
                    let ratio = verdict.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}: "));
                    vec![
                        claim.text.to_owned(),
                        claim.bound.to_string(),
                        format!("{ratio}{verdict}"),
                        (*because).to_owned(),
                    ]
                })
                .collect();
            body.push_str(&html_table("What the paper says, here", &columns, &rows));
        }
        body.push_str(&paragraph("Not reproduced", figure.missing));
        body.push_str(&paragraph("What differs", figure.differs));
        for reason in measurements.reasons(&figure.panels) {
            body.push_str(&paragraph("Not measured", reason));
        }
        for panel in &figure.panels {
            let Table { columns, rows } = Table::of(panel, measurements);
            body.push_str(&html_table(panel.title, &columns, &rows));
        }
        body.push_str("</section>\n");
    }
    let Facts { load, commit, machine, command, .. } = facts;
    let facts = [("Load", load), ("Commit", commit), ("Machine", machine), ("Command", command)];
    let facts = facts.map(|(name, value)| vec![name.to_owned(), value.clone()]);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>Syros: the papers' figures</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>The papers’ figures</h1>\n{}{body}</body>\n</html>\n",
        html_table("", &[], &facts)
    )
}
