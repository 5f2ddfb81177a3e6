//! A page of HTML that needs nothing but itself: tables, and plots as SVG.
//!
//! # Why no library draws
//!
//! The drawing code here and in `figure::draw` is about 500 lines. Its SVG names classes, and one style sheet colours lines,
//! bars and text for light and dark readers; each line and bar has a `<title>` that a browser shows; a figure is a file of
//! text in `docs/figures`, whose differences between two commits can be read. `plotters` (0.3.7) writes colours into
//! each element, without classes and titles, so a dark page would need a second file. `charming` (0.6.0) writes ECharts
//! options, which need a script in the page. `poloto` (19.1.2) is styled by CSS, but has no groups of bars with whiskers, and
//! would leave us the bars, the legends and the tables. A table crate such as `comfy-table` (8.0.1) would replace the ten lines of
//! `figure::table::text` that count the widest cell of each column.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod lines;
mod tables;

use super::comparison::{Comparison, Metric};
use super::facts::Facts;
use axis::picture;

/// How the page looks, in light and in dark.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Colours that there are; the next contender has the first one again, but not the same dashes.
const COLOURS: usize = 12;

/// Loads that share a figure.
const LOADS_PER_FIGURE: usize = 8;

/// What has a bar for each contender.
const FIGURES: [Metric; 4] = [Metric::Throughput, Metric::Mean, Metric::P99, Metric::Cpu];

/// Text as part of a page.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no other control characters, not even as entities.
            letter if letter.is_control() && !matches!(letter, '\t' | '\n') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// The classes that give the mark of a contender its colour and its dashes.
pub(crate) fn class(contender: usize) -> String {
    format!("c{} d{}", contender % COLOURS, contender % 4)
}

/// A figure with what must be known to judge it.
fn figure(title: &str, drawing: &str, comparison: &Comparison, note: &str, facts: &Facts) -> String {
    let has_bars = drawing.contains("<rect");
    let mut legend = String::new();
    for (index, entry) in comparison.entries.iter().enumerate() {
        let (class, protocol) = (class(index), escape(&entry.protocol));
        let mark = if has_bars {
            format!("<rect class=\"swatch {class}\" x=\"8\" y=\"0\" width=\"12\" height=\"12\"/>")
        } else {
            format!("<line class=\"line {class}\" x1=\"1\" y1=\"6\" x2=\"27\" y2=\"6\"/>")
        };
        legend.push_str(&format!("<li><svg class=\"key\" viewBox=\"0 0 28 12\">{mark}</svg>{protocol}</li>"));
    }
    let Facts { commit, machine, command, .. } = facts;
    format!(
        "<figure>\n<h3>{}</h3>\n{drawing}\n<ul class=\"legend\">{legend}</ul>\n<figcaption>{note} Commit {}, {}.<br/>\
         <code>{}</code></figcaption>\n</figure>\n",
        escape(title),
        escape(commit),
        escape(machine),
        escape(command)
    )
}

/// What a bar is, in words.
fn bar_note(comparison: &Comparison) -> String {
    let rounds = comparison.entries.first().map_or(0, |entry| entry.samples.len());
    match rounds {
        1 => "One round.".to_owned(),
        rounds => format!("Bars: median of {rounds} rounds; whiskers: from the least to the most of them."),
    }
}

/// The page.
#[must_use]
pub fn page(facts: &Facts, comparisons: &[Comparison]) -> String {
    titled_page("Protocols compared", facts, comparisons, "")
}

/// The page, with a title and with more HTML below the facts.
pub(crate) fn titled_page(title: &str, facts: &Facts, comparisons: &[Comparison], more: &str) -> String {
    let mut body = String::new();
    let mut clients: Vec<usize> = comparisons.iter().map(|comparison| comparison.clients).collect();
    clients.dedup();
    for clients in clients {
        let s = if clients == 1 { "" } else { "s" };
        body.push_str(&format!("<section>\n<h2>{clients} client{s}</h2>\n"));
        let same: Vec<&Comparison> =
            comparisons.iter().filter(|comparison| comparison.clients == clients).collect();
        for loads in same.chunks(LOADS_PER_FIGURE) {
            for metric in FIGURES {
                if let (Some(drawing), Some(first)) =
                    (bars::draw(metric, "workload, and how its keys are chosen", loads), loads.first())
                {
                    body.push_str(&figure(
                        metric.name(),
                        &picture(metric.name(), &drawing),
                        first,
                        &bar_note(first),
                        facts,
                    ));
                }
            }
        }
        for comparison in &same {
            let title = format!("Latency: {}", comparison.load());
            if let Some(drawing) = lines::draw(comparison) {
                let note = "Of all rounds together, up to the 99.9th percentile.";
                body.push_str(&figure(
                    &title,
                    &picture("distribution of latency", &drawing),
                    comparison,
                    note,
                    facts,
                ));
            }
        }
        same.iter().for_each(|comparison| body.push_str(&tables::draw(comparison)));
        body.push_str("</section>\n");
    }
    let Facts { replicas, durability, engine, load, commit, machine, command, .. } = facts;
    let facts = [
        ("Replicas", replicas.to_string()),
        ("Durability", durability.clone()),
        ("Engine", engine.clone()),
        ("Data", facts.records()),
        ("Load", load.clone()),
        ("Commit", commit.clone()),
        ("Machine", machine.clone()),
        ("Command", command.clone()),
    ];
    let rows: String = facts
        .iter()
        .map(|(name, value)| format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n", escape(value)))
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>Syros: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<table class=\"facts\">\n{rows}</table>\n{more}{body}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn the_page_is_well_formed_and_names_everybody() {
        let facts = Facts {
            command: "syros-lab bench compare --dir 'a<b>&\"c\"\u{1}'".to_owned(),
            ..Facts::default()
        };
        let mut several = vec![comparison(), comparison()];
        several[1].workload = "a".to_owned();
        several.push(Comparison { clients: 20, ..comparison() });
        let text = page(&facts, &several);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        let document = roxmltree::Document::parse_with_options(&text, options).unwrap();
        let of = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
        // Four figures with bars for each number of clients, and one with lines for each load.
        assert_eq!((of("figure"), of("section"), of("figcaption")), (4 * 2 + 3, 2, 4 * 2 + 3));
        // 4 metrics, 3 loads, 2 protocols.
        let bars = document.descendants().filter(|node| {
            node.has_tag_name("rect") && node.attribute("class").is_some_and(|class| class.starts_with("bar"))
        });
        assert_eq!(bars.count(), 4 * 3 * 2);
        assert_eq!(of("polyline"), 3 * 2);
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        for expected in ["vr", "skyros<&>", "operations/s", "µs/operation"] {
            assert!(texts.contains(&expected), "{expected} is missing in {texts:?}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf\""), "every number is one");
        for remote in ["http:", "https:", "@import", "url("] {
            assert!(!text.contains(remote), "{remote}: it needs nothing but itself");
        }
    }

    #[test]
    fn nothing_measured_is_no_plot() {
        let mut nothing = comparison();
        let samples = nothing.entries.iter_mut().flat_map(|entry| &mut entry.samples);
        samples.for_each(|sample| *sample = super::super::Sample::default());
        let text = page(&Facts::default(), &[nothing]);
        assert!(
            roxmltree::Document::parse_with_options(
                &text,
                roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() }
            )
            .is_ok()
        );
        assert!(!text.contains("<figure>") && page(&Facts::default(), &[]).contains("<h1>"));
    }
}
