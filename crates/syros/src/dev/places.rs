//! A development cluster whose nodes are far from each other.

use syros_cli::regions::client_names;
use syros_regions::Regions;
use syros_relay::Relay;

use super::layout::{Cluster, comma_separated, replica_addresses};

/// Seed of the jitter and the losses of the lines: which ones there are makes no difference.
const SEED: u64 = 1;

/// The regions, and the lines between them.
pub(super) struct Places {
    pub(super) regions: Regions,
    pub(super) relay: Relay,
}

impl Places {
    /// Lays the lines to the nodes.
    pub(super) fn new(regions: Regions, cluster: &Cluster) -> Result<Self, String> {
        let relay = Relay::start(&regions, &replica_addresses(cluster), SEED);
        let relay = relay.map_err(|error| format!("cannot lay lines between the regions: {error}"))?;
        Ok(Self { regions, relay })
    }

    /// The name of the region of a node.
    pub(super) fn of_node(&self, node: usize) -> &str {
        self.regions.name(self.regions.replicas()[node])
    }

    /// Each region that has clients, and where these reach the replicas.
    pub(super) fn of_clients(&self) -> impl Iterator<Item = (&str, String)> {
        let regions = self.regions.clients().iter();
        regions
            .map(|region| (self.regions.name(*region), comma_separated(&self.relay.addresses_from(*region))))
    }

    /// A command with the addresses in place of each `{cluster:REGION}`.
    pub(super) fn fill_in(&self, command: &str) -> String {
        self.of_clients().fold(command.to_owned(), |command, (name, addresses)| {
            command.replace(&format!("{{cluster:{name}}}"), &addresses)
        })
    }
}

/// Checks that every `{cluster:REGION}` in a command is of a region that has clients.
pub(super) fn check_command(command: &str, regions: &Regions) -> Result<(), String> {
    let names = client_names(regions);
    for (at, start) in command.match_indices("{cluster:") {
        let rest = &command[at + start.len()..];
        let name = rest.split_once('}').map_or(rest, |(name, _)| name);
        if !names.contains(&name) {
            return Err(format!("--exec: no clients are in '{name}', but in {}", names.join(", ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regions_with_clients_have_addresses_for_them() {
        let regions = syros_cli::regions::load("far-leader").unwrap();
        assert_eq!(check_command("syros {cluster} {cluster:wisconsin}", &regions), Ok(()));
        for command in ["{cluster:paris}", "{cluster:wisconsin ", "{cluster:}"] {
            let problem = check_command(command, &regions).unwrap_err();
            assert!(problem.contains("but in wisconsin"), "{problem}");
        }
    }
}
