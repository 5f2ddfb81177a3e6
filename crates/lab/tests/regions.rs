//! `syros dev --regions`, measured with `syros-lab bench write`.

mod common;

use common::{Scratch, free_ports, lab_alone, run, server, text};
use std::process::Command;

#[test]
fn regions_are_as_far_as_they_are_said_to_be() {
    let (scratch, port) = (Scratch::new("regions"), free_ports());
    let file = scratch.0.join("moon.toml");
    let description = "replicas = ['earth', 'moon', 'moon']\nclients = ['moon', 'earth']\n\
                       [[line]]\nwithin-each = true\nrtt-ms = 0.1\n\
                       [[line]]\nbetween = ['earth', 'moon']\nrtt-ms = 300\n";
    std::fs::write(&file, description).unwrap();
    let program = lab_alone().get_program().to_string_lossy().into_owned();
    let bench = format!(
        "'{program}' bench write --cluster {{cluster:moon}} --writers 1 --connections 1 --warm-up 1s \
         --duration 2s --json; echo {{cluster}} {{cluster:earth}}"
    );
    let mut dev = Command::new(server());
    dev.arg("dev").arg("--dir").arg(scratch.0.join("cluster")).args(["--port", &port.to_string()]);
    dev.arg("--regions").arg(&file).args(["--durability", "replicated", "--exec", &bench]);
    let output = run(&mut dev);
    assert!(output.status.success(), "{}", text(&output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = report.split_once("\"p50_us\":").unwrap_or_else(|| panic!("{report}{}", text(&output))).1;
    let median: f64 = after.split([',', '}']).next().unwrap().parse().unwrap();
    // The leader is on earth, and no update is complete without it.
    assert!(median >= 300_000.0, "{report}");
    let addresses: Vec<&str> = report.lines().last().unwrap().split([',', ' ']).collect();
    assert_eq!(addresses.len(), 6, "{report}");
    assert!(addresses[..3].iter().all(|address| !addresses[3..].contains(address)), "{report}");
}
