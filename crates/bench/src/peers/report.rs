//! What systems promise, as a table, as part of a page, and in the lines for machines.

use super::{Guarantees, PeerError, PeerKind, PeerOptions};
use crate::compare::{Comparison, Facts, Line, Sample, escape, titled_page};
use core::fmt;
use serde::Serialize;

/// What systems promise. `Display` prints a table.
#[derive(Clone, Debug, Default)]
pub struct Promises(Vec<Promise>);

/// What one promises.
#[derive(Clone, Debug)]
struct Promise {
    kind: PeerKind,
    servers: usize,
    version: String,
    terms: Guarantees,
}

impl Promises {
    /// Of these systems, whose versions are as they say themselves; `commit` is that of Syros.
    ///
    /// # Errors
    /// [`PeerError::NotInstalled`], or a program cannot be run.
    pub fn of(kinds: &[PeerKind], options: &PeerOptions, commit: &str) -> Result<Self, PeerError> {
        let promises = kinds.iter().map(|kind| {
            let version = super::version(*kind)?
                .unwrap_or_else(|| format!("commit {commit}, protocol {}", options.protocol));
            let (servers, terms) = (kind.replicas(options.replicas), options.terms(*kind));
            Ok(Promise { kind: *kind, servers, version, terms })
        });
        promises.collect::<Result<Vec<Promise>, PeerError>>().map(Self)
    }

    /// The line for machines of what a system, by its position, did in a round, which is counted from 1, under a load of
    /// this name, distribution and number of clients: that of a comparison, with what the system promises. `facts` are
    /// those of all systems.
    #[must_use]
    pub fn json(
        &self,
        system: usize,
        facts: &Facts,
        load: (&str, &str, usize),
        round: usize,
        sample: &Sample,
    ) -> String {
        let Some(Promise { kind, servers, version, terms }) = self.0.get(system) else {
            return String::new();
        };
        let (durability, engine) = (terms.durability.to_owned(), terms.engine.to_owned());
        let facts = Facts { durability, engine, ..facts.clone() };
        let line = PeerLine {
            line: Line::new(&facts, load, (kind.name(), *servers), round, sample),
            version,
            acknowledged: &terms.acknowledged,
            consistency: terms.consistency,
            not_equal: terms.not_equal,
        };
        serde_json::to_string(&line).expect("numbers and texts are always JSON")
    }

    /// A page with plots, and with what the systems promise.
    #[must_use]
    pub fn page(&self, facts: &Facts, comparisons: &[Comparison]) -> String {
        let mut rows = String::new();
        for row in self.rows() {
            let cells: String = row.iter().skip(1).map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            rows.push_str(&format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&row[0])));
        }
        let heads: String = HEADINGS.map(|heading| format!("<th scope=\"col\">{heading}</th>")).concat();
        let more = format!(
            "<div class=\"wide\"><table class=\"words\">\n<caption>What is not equal</caption>\n<thead><tr>{heads}</tr></thead>\n\
             <tbody>\n{rows}</tbody></table></div>\n"
        );
        titled_page("Syros and others", facts, comparisons, &more)
    }

    /// The cells of the table.
    fn rows(&self) -> impl Iterator<Item = [String; HEADINGS.len()]> {
        self.0.iter().map(|Promise { kind, servers, version, terms }| {
            [
                kind.to_string(),
                servers.to_string(),
                version.clone(),
                terms.acknowledged.clone(),
                terms.consistency.to_owned(),
                terms.not_equal.to_owned(),
            ]
        })
    }
}

/// The columns.
const HEADINGS: [&str; 6] =
    ["system", "servers", "version", "acknowledged when in", "consistency", "not equal to the others"];

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Promise { kind, servers, version, terms } in &self.0 {
            let s = if *servers == 1 { "" } else { "s" };
            let Guarantees { acknowledged, consistency, not_equal, .. } = terms;
            writeln!(f, "{kind:<12} {servers} server{s}, {version}; acknowledged when in {acknowledged}")?;
            writeln!(f, "{:<12} {consistency}; not equal: {not_equal}", "")?;
        }
        Ok(())
    }
}

/// A line for machines.
#[derive(Serialize)]
struct PeerLine<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    version: &'a str,
    acknowledged: &'a str,
    consistency: &'a str,
    not_equal: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::tests::options;

    #[test]
    fn what_is_not_equal_stands_in_the_table_in_the_page_and_in_every_line() {
        let promises =
            Promises::of(&[PeerKind::Syros, PeerKind::SyrosResp], &options(3, true), "abc").unwrap();
        let text = promises.to_string();
        assert!(
            text.contains(
                "syros        3 servers, commit abc, protocol default; acknowledged when in disks of 2 of 3"
            ),
            "{text}"
        );
        let page = promises.page(&Facts::default(), &[]);
        let parsing = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        assert!(roxmltree::Document::parse_with_options(&page, parsing).is_ok(), "{page}");
        assert!(page.contains("<td>linearizable</td>") && page.contains("<h1>Syros and others</h1>"));
        let line = promises.json(1, &Facts::default(), ("a", "uniform", 2), 1, &Sample::default());
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["protocol"], &line["durability"]), (&"syros-resp".into(), &"fsync".into()));
        assert!(line["not_equal"].is_string() && line["version"] == "commit abc, protocol default");
    }
}
