//! Whether a process can serve.

use syros_resp::ServerReport;

/// Why a process cannot serve clients at present, each reason a line; nothing if it can. How far its data are behind is no
/// reason: a read waits until they are not.
#[must_use]
pub fn not_ready(report: &ServerReport) -> Vec<String> {
    let mut reasons = Vec::new();
    if report.is_loading {
        reasons.push("it reads back what its disk holds".to_owned());
    }
    if report.status != "normal" {
        reasons.push(format!("its status is {}", report.status));
    }
    if report.leader.is_none() && report.status == "normal" {
        reasons.push("it knows of no leader".to_owned());
    }
    if report.users_outdated {
        reasons.push(
            "nobody has told it of late whether the users have changed, so commands wait or are refused"
                .to_owned(),
        );
    }
    if !matches!(report.disk, "" | "ok") {
        reasons.push(format!("its disk is {}", report.disk));
    }
    if report.answered.iter().any(|(name, count)| *name == "diverged" && *count > 0) {
        reasons.push("its data are not those of the other members".to_owned());
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> ServerReport {
        ServerReport { status: "normal".to_owned(), leader: Some(0), disk: "ok", ..ServerReport::default() }
    }

    #[test]
    fn each_reason_is_told() {
        assert!(not_ready(&well()).is_empty());
        let gateway = ServerReport { disk: "", ..well() };
        assert!(not_ready(&gateway).is_empty());
        for (report, reason) in [
            (ServerReport { is_loading: true, ..well() }, "it reads back what its disk holds"),
            (
                ServerReport { users_outdated: true, ..well() },
                "nobody has told it of late whether the users have changed, so commands wait or are refused",
            ),
            (
                ServerReport { status: "no-quorum".to_owned(), leader: None, ..well() },
                "its status is no-quorum",
            ),
            (ServerReport { leader: None, ..well() }, "it knows of no leader"),
            (ServerReport { disk: "full", ..well() }, "its disk is full"),
            (
                ServerReport { answered: vec![("diverged", 1)], ..well() },
                "its data are not those of the other members",
            ),
        ] {
            assert_eq!(not_ready(&report), [reason]);
        }
    }
}
