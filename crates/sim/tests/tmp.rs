use syros_sim::*;
use syros_protocol::replica::PlantedBug;
#[test]
fn skip() {
    for variant in 0..7 {
    let mut found = 0;
    for seed in 1..300 {
        let mut s = Swarm::draw(seed);
        if variant >= 1 { s.nemesis = Default::default(); }
        if variant >= 2 { s.disk.crash_ppm = 0; s.disk.fail_ppm = 0; }
        if variant >= 3 { s.workload.packed_percent = 0; }
        if variant >= 4 { s.protocol.order_delay = std::time::Duration::from_millis(60); }
        if variant >= 5 { s.workload.weights = [1,0,0,0,0,0,0,0,0,0,0,1]; }
        if variant >= 6 { s.network = syros_sim::network::NetworkFaults::none(100_000); }
         let r = run_swarm(s, &Options { trace: false, planted: Some(PlantedBug::ReadSkipsPending) });
        if let Some(v) = r.violation { found += 1;  }
    }
    println!("variant {variant} found {found}");
    }
}
