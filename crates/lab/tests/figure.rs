//! `syros-lab bench figure`.

mod common;

use common::{Scratch, lab, run, text};
use std::process::Output;

fn figure(more: &[&str]) -> Output {
    let mut command = lab();
    run(command.args(["bench", "figure"]).args(more))
}

/// The lines for machines.
fn lines(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", text(output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    report
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

#[test]
fn the_list_has_every_figure_of_the_papers() {
    let output = figure(&["--list"]);
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for (paper, figures) in [
        ("skyros", "8a 8b-i 8b-ii 8b-iii 9 10 11 12 13 14a 14b 14c 14d 14e"),
        ("syros", "5 6 7 8 9 10 11 12"),
        ("ionia", "8 9 10 11 12 13 14 15 16"),
        ("curp", "8 9"),
    ] {
        for figure in figures.split(' ') {
            assert!(names.contains(&format!("{paper}-{figure}").as_str()), "{paper}-{figure}: {list}");
        }
    }
}

#[test]
fn an_unknown_figure_is_named_with_those_that_there_are() {
    let output = figure(&["skyros-99", "--virtual"]);
    let problem = text(&output);
    assert!(!output.status.success());
    assert!(problem.contains("'skyros-99'") && problem.contains("skyros-8a") && problem.contains("curp-9"));
}

#[test]
fn a_figure_in_virtual_time_gives_lines_a_plot_and_a_document() {
    let scratch = Scratch::new("figure");
    let path = |name: &str| scratch.0.join(name).to_str().unwrap().to_owned();
    let (svg, html, out) = (path("plot.svg"), path("page.html"), path("figures"));
    let wanted =
        ["skyros-8b-i", "--virtual", "--quick", "--json", "--svg", &svg, "--html", &html, "--out", &out];
    let lines = lines(&figure(&wanted));
    let (points, statements): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["protocol"].is_string());
    // Three shares, two protocols; and three statements, of which one is about a share that is left out.
    assert_eq!((points.len(), statements.len()), (6, 3), "{lines:?}");
    for line in &points {
        assert_eq!((&line["figure"], &line["virtual"]), (&"skyros-8b-i".into(), &true.into()));
        assert!(line["ops_per_s"].as_f64().unwrap() > 0.0 && line["failed"] == 0, "{line}");
        assert!(line["commit"].is_string() && line["command"].is_string() && line["machine"].is_string());
    }
    assert!(statements[0]["ratio"].as_f64().unwrap() > 1.5, "{}", statements[0]);
    assert_eq!(statements[0]["verdict"], "holds");
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let plot = read(&svg);
    assert!(plot.starts_with("<svg xmlns=") && plot.contains("<polyline") && plot.ends_with("</svg>\n"));
    assert!(read(&html).contains("<h2>Skyros, figure 8b-i"));
    assert_eq!(read(&format!("{out}/skyros-8b-i.svg")).matches("<polyline").count(), 2);
    let document = read(&format!("{out}/README.md"));
    assert!(document.contains("![Skyros, figure 8b-i") && document.contains("| the paper's statement |"));
}

#[test]
fn what_cannot_be_measured_is_said() {
    let output = figure(&["skyros-13", "ionia-11", "--virtual", "--quick"]);
    let report = text(&output);
    assert!(output.status.success(), "{report}");
    assert!(report.contains("Not measured: there are no disks in virtual time"), "{report}");
    assert!(report.contains("Not reproduced: (b)"), "{report}");
}

#[test]
fn figures_are_made_with_real_processes_too_near_and_far() {
    let scratch = Scratch::new("figure-real");
    let directory = scratch.0.join("clusters").to_str().unwrap().to_owned();
    let quick = ["--quick", "--duration", "100ms", "--json", "--dir", &directory];
    let near = lines(&figure(&[&["skyros-14d"], &quick[..]].concat()));
    let protocols: Vec<&str> = near.iter().filter_map(|line| line["protocol"].as_str()).collect();
    assert_eq!(protocols, ["vr", "curp-c", "skyros"], "{near:?}");
    assert!(near.iter().filter(|line| line["protocol"].is_string()).all(|line| line["virtual"] == false));
    let far = lines(&figure(&[&["syros-7"], &quick[..]].concat()));
    let mean = |line: &serde_json::Value| line["mean_us"].as_f64().unwrap();
    // The way to Paris, and the way next door.
    assert!(mean(&far[0]) > 90_000.0 && mean(&far[2]) < 50_000.0, "{far:?}");
    assert!(!std::path::Path::new(&directory).exists(), "it cleans up");
}
