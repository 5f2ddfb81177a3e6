//! OTLP over HTTP, in its JSON encoding: `ExportTraceServiceRequest` and `ExportTraceServiceResponse`.
//!
//! `opentelemetry-otlp` would bring an SDK with samplers, processors and id generators of its own, and `opentelemetry-proto` the
//! generated types of all signals with `prost` (and `tonic` for some of them). A span needs ten fields, its ids come from
//! elsewhere, and every collector that takes OTLP over HTTP takes JSON; so this writes JSON with `serde_json`, which is here
//! already. In that encoding ids are hexadecimal, and numbers of 64 bits are texts.

use serde_json::{Value as Json, json};

use crate::span::{Resource, Span, Value};

/// The content type of a request.
pub(crate) const CONTENT_TYPE: &str = "application/json";

/// What the spans of this build are made by, as an instrumentation scope.
const SCOPE: &str = "syros";

/// W3C's trace flags: it is sampled, and the id of the trace is random enough to decide that.
const FLAGS: u32 = 0b11;

/// The number of a status that says that something failed.
const STATUS_ERROR: u8 = 2;

fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Flag(flag) => json!({ "boolValue": flag }),
    };
    json!({ "key": name, "value": value })
}

fn span(span: &Span) -> Json {
    let attributes: Vec<Json> = span.attributes.iter().map(|(name, value)| attribute(name, value)).collect();
    let mut json = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes,
        "flags": FLAGS,
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = parent.to_string().into();
    }
    if let Some(error) = &span.error {
        json["status"] = json!({ "code": STATUS_ERROR, "message": error });
    }
    json
}

/// A request that exports these spans of a process.
pub(crate) fn request(resource: &Resource, spans: &[Span]) -> String {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let attributes: Vec<Json> = resource
        .attributes
        .iter()
        .map(|(name, value)| attribute(name, &Value::Text(value.clone().into())))
        .collect();
    let scope = json!({ "name": SCOPE, "version": env!("CARGO_PKG_VERSION") });
    json!({
        "resourceSpans": [{
            "resource": { "attributes": attributes },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }],
    })
    .to_string()
}

/// How many spans a collector says that it has not taken, of a request that it has answered with success. An answer that is
/// something else, such as none, says nothing: all were taken.
pub(crate) fn rejected(answer: &[u8]) -> u64 {
    let answer: Json = serde_json::from_slice(answer).unwrap_or_default();
    let rejected = &answer["partialSuccess"]["rejectedSpans"];
    // Both are allowed of a number of 64 bits.
    let text = rejected.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| rejected.as_u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Stage, TraceId, parent_of, span_of};
    use crate::span::SpanKind;
    use syros_types::{OperationId, SessionId};

    #[test]
    fn a_request_is_as_the_specification_of_otlp_has_it() {
        let trace = TraceId::of_update(199, OperationId { session: SessionId(17), sequence: 4 });
        let spans = [
            Span {
                trace,
                id: span_of(trace, 0, Stage::FrontEnd, 0),
                parent: None,
                name: "SET".into(),
                kind: SpanKind::Server,
                start: 1_700_000_000_000_000_001,
                end: 1_700_000_000_000_000_009,
                attributes: vec![
                    ("db.operation.name", "SET".into()),
                    ("syros.entry", u64::MAX.into()),
                    ("syros.internal", Value::Flag(false)),
                ],
                error: Some("timed-out".into()),
            },
            Span {
                trace,
                id: span_of(trace, 3, Stage::Replica, 0),
                parent: parent_of(trace, 3, Stage::Replica),
                name: "replica".into(),
                kind: SpanKind::Internal,
                start: 5,
                end: 5,
                attributes: Vec::new(),
                error: None,
            },
        ];
        let resource = Resource::default().with("service.name", "syros").with("service.name", "other");
        let root = span_of(trace, 0, Stage::FrontEnd, 0).to_string();
        let expected = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "syros" } }] },
            "scopeSpans": [{
                "scope": { "name": "syros", "version": env!("CARGO_PKG_VERSION") },
                "spans": [
                    {
                        "traceId": trace.to_string(),
                        "spanId": root,
                        "name": "SET",
                        "kind": 2,
                        "startTimeUnixNano": "1700000000000000001",
                        "endTimeUnixNano": "1700000000000000009",
                        "attributes": [
                            { "key": "db.operation.name", "value": { "stringValue": "SET" } },
                            { "key": "syros.entry", "value": { "intValue": "9223372036854775807" } },
                            { "key": "syros.internal", "value": { "boolValue": false } },
                        ],
                        "flags": 3,
                        "status": { "code": 2, "message": "timed-out" },
                    },
                    {
                        "traceId": trace.to_string(),
                        "spanId": span_of(trace, 3, Stage::Replica, 0).to_string(),
                        "parentSpanId": root,
                        "name": "replica",
                        "kind": 1,
                        "startTimeUnixNano": "5",
                        "endTimeUnixNano": "5",
                        "attributes": [],
                        "flags": 3,
                    },
                ],
            }],
        }] });
        let request: Json = serde_json::from_str(&request(&resource, &spans)).unwrap();
        assert_eq!(request, expected);
    }

    #[test]
    fn rejected_spans_are_read_in_both_notations_and_anything_else_is_none() {
        for (answer, count) in [
            (r#"{"partialSuccess":{"rejectedSpans":"7","errorMessage":"no"}}"#, 7),
            (r#"{"partialSuccess":{"rejectedSpans":7}}"#, 7),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedSpans":"-7"}}"#, 0),
            ("{}", 0),
            ("[]", 0),
            ("", 0),
            ("<html>", 0),
            (r#"{"partialSuccess":"#, 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), count, "{answer}");
        }
    }
}
