//! Alerts are in three places: rules for Prometheus, conditions of the dashboard, and runbooks. They name the same ones.

use std::collections::BTreeSet;
use std::fs;

fn read(path: &str) -> String {
    fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).expect("it is there")
}

/// What stands behind `before` in each line that begins with it, up to the first character that is no letter.
fn named(text: &str, before: &str) -> BTreeSet<String> {
    let rest = text.lines().filter_map(|line| line.trim_start().strip_prefix(before));
    rest.map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
}

fn rules() -> BTreeSet<String> {
    named(&read("../../docs/operate/alerts.yml"), "- alert: ")
}

/// The names that are in one of them only.
fn apart<'a>(one: &'a BTreeSet<String>, other: &'a BTreeSet<String>) -> Vec<&'a String> {
    one.symmetric_difference(other).collect()
}

#[test]
fn every_alert_has_a_section_of_the_runbooks_and_leads_there() {
    let (rules, runbooks) = (rules(), read("../../docs/operate/runbooks.md"));
    assert!(rules.len() > 15, "{rules:?}");
    assert_eq!(apart(&rules, &named(&runbooks, "## ")), Vec::<&String>::new());
    let yaml = read("../../docs/operate/alerts.yml");
    for alert in yaml.split("- alert: ").skip(1) {
        let name = alert.split_whitespace().next().expect("it has a name");
        let link = format!("runbook_url: \"runbooks.md#{}\"", name.to_lowercase());
        assert!(alert.contains(&link), "{name} does not lead to its section: {link}");
    }
    for section in runbooks.split("\n## ").skip(1) {
        for part in ["**It means**", "**See it.**", "**Do"] {
            assert!(section.contains(part), "{part} is not in: {section}");
        }
    }
}

#[test]
fn the_dashboard_judges_every_alert_or_leaves_it_to_prometheus() {
    let script = read("dashboard/alerts.js");
    let (judged, elsewhere) = (named(&script, "name: \""), named(&script, "export const ELSEWHERE = [\""));
    assert!(judged.is_disjoint(&elsewhere));
    assert_eq!(apart(&rules(), &judged.union(&elsewhere).cloned().collect()), Vec::<&String>::new());
    // Of the same weight.
    let severities = |text: &str, before: &str, severity: &str| {
        let all =
            text.split(before).skip(1).map(|alert| (named(&format!("x{alert}"), "x"), alert.to_owned()));
        let all = all.filter(|(_, alert)| alert.contains(severity));
        all.flat_map(|(name, _)| name).collect::<BTreeSet<String>>()
    };
    let ours = severities(&script, "name: \"", "severity: \"critical\"");
    let theirs = severities(&read("../../docs/operate/alerts.yml"), "- alert: ", "severity: critical");
    assert_eq!(apart(&ours, &theirs), Vec::<&String>::new());
}

/// A name that is in one place only is found.
#[test]
fn what_is_missing_is_seen() {
    let (mut rules, sections) = (rules(), named("## SyrosDown\n## SyrosNowhere\n", "## "));
    rules.retain(|name| name == "SyrosDown");
    assert_eq!(apart(&rules, &sections), ["SyrosNowhere"]);
}
