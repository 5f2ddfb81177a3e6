//! Where traces go, as the configuration file and the options of a gateway say it.

use syros_runtime::{
    TRACE_ATTRIBUTES_MAX, TRACE_TEXT_BYTES_MAX, TraceEndpoint, TraceSampling, TraceSettings,
    parse_trace_attribute,
};
use syros_settings::{ConfigError, Reader};

/// Reads where traces go; `None`: nothing is traced.
pub(super) fn read(section: &mut Reader) -> Result<Option<TraceSettings>, ConfigError> {
    let endpoint = section.text("endpoint")?.filter(|text| !text.is_empty());
    let share = section.number("sample", 0.0..=1.0)?.unwrap_or(TraceSettings::SHARE_DEFAULT);
    let service_name = section.text("service-name")?;
    let texts = section.texts("attributes")?.unwrap_or_default();

    let service_name = service_name.unwrap_or_else(|| TraceSettings::SERVICE_NAME_DEFAULT.to_owned());
    check_service_name(&service_name).map_err(|problem| section.error("service-name", problem))?;
    if texts.len() > TRACE_ATTRIBUTES_MAX {
        let problem = format!("has {} attributes; {TRACE_ATTRIBUTES_MAX} are the most", texts.len());
        return Err(section.error("attributes", problem));
    }
    let attribute =
        |text: &String| parse_attribute(text).map_err(|problem| section.error("attributes", problem));
    let attributes = texts.iter().map(attribute).collect::<Result<_, _>>()?;
    let Some(text) = endpoint else { return Ok(None) };
    let endpoint = parse_endpoint(&text).map_err(|problem| section.error("endpoint", problem))?;
    // The range has been checked.
    let sampling = TraceSampling::of_share(share);
    let sampling = sampling.ok_or_else(|| section.error("sample", "a number from 0 to 1 is expected"))?;
    Ok(Some(TraceSettings { endpoint, sampling, service_name, attributes }))
}

/// Reads where a collector listens.
pub(crate) fn parse_endpoint(text: &str) -> Result<TraceEndpoint, String> {
    TraceEndpoint::parse(text).map_err(|error| format!("\"{text}\" {error}"))
}

/// Reads the share of operations that are traced.
pub(crate) fn parse_share(text: &str) -> Result<TraceSampling, String> {
    let sampling = text.parse().ok().and_then(TraceSampling::of_share);
    sampling.ok_or_else(|| "a number from 0 to 1 is expected, such as 0.001".to_owned())
}

/// Reads an attribute of the process.
pub(crate) fn parse_attribute(text: &str) -> Result<(String, String), String> {
    parse_trace_attribute(text).ok_or_else(|| {
        format!(
            "\"{text}\" is not NAME=VALUE, such as \"deployment.environment.name=production\", with {TRACE_TEXT_BYTES_MAX} \
             bytes each at most"
        )
    })
}

/// Checks what a process is to be called.
fn check_service_name(name: &str) -> Result<(), String> {
    if (1..=TRACE_TEXT_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(format!("has {} bytes; from 1 to {TRACE_TEXT_BYTES_MAX} are allowed", name.len()))
}

/// Reads what a process is to be called.
pub(crate) fn parse_service_name(text: &str) -> Result<String, String> {
    check_service_name(text).map(|()| text.to_owned())
}
