//! `syros gateway`: the Redis front end without a replica.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use syros_cli::tls::TlsOptions;
use syros_cli::{check_address, check_different, signals};
use syros_runtime::{
    ClientCertificates, FrontConfig, GatewayConfig, GatewayNode, NodesTls, REDIS_ADDRESS,
    TRACE_ATTRIBUTES_MAX, TlsConfig, TraceEndpoint, TraceSampling, TraceSettings,
};
use syros_types::{ReadPolicy, WritePolicy};

use crate::certificate::parse_cluster;
use crate::config::traces::{parse_attribute, parse_endpoint, parse_service_name, parse_share};
use crate::config::{CONNECTIONS, listening_address};
use crate::logger;
use crate::secret::read_password;

/// Options of `syros gateway`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros gateway --cluster db1:7379,db2:7379,db3:7379 --port 6379
  redis-cli -p 6379 SET greeting hello
  syros gateway --cluster db1:7379,db2:7379,db3:7379 --tls gateway-tls --port 0 --tls-port 6380
  syros gateway --cluster db1:7379,db2:7379,db3:7379 --traces http://127.0.0.1:4318 --trace-sample 0.01

A gateway on the host of the application saves the network hop to a node: a SET takes one round trip.")]
pub(crate) struct Options {
    /// Where the replicas listen for each other, in the order of their ids, as host:port
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', required = true, value_parser = parse_address)]
    cluster: Vec<String>,
    /// Port for Redis clients; 0: none, where there is --tls-port
    #[arg(long, value_name = "PORT", default_value_t = REDIS_ADDRESS.port())]
    port: u16,
    /// Port for Redis clients that speak TLS [default: none]
    #[arg(long, value_name = "PORT", requires = "tls", value_parser = clap::value_parser!(u16).range(1..))]
    tls_port: Option<u16>,
    /// Whether Redis clients that speak TLS show certificates: required, optional or none
    #[arg(long, value_name = "WHETHER", default_value = "required", value_parser = parse_client_certificates)]
    client_certificates: ClientCertificates,
    #[command(flatten)]
    tls: TlsOptions,
    /// IP address to listen on. Clients of other machines need a password, or --no-protected-mode
    #[arg(long, value_name = "IP", default_value_t = REDIS_ADDRESS.ip())]
    bind: IpAddr,
    /// A file with the first password of the default user of a new cluster, as on its nodes [default: none]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Serve clients of other machines, too, while the default user of the cluster needs no password
    #[arg(long)]
    no_protected_mode: bool,
    /// Where HTTP clients get a dashboard, /metrics, /livez and /readyz, as IP:PORT [default: nowhere]
    #[arg(long, value_name = "IP:PORT", value_parser = parse_metrics)]
    metrics: Option<SocketAddr>,
    /// Where traces of operations go, to a collector that takes OTLP over HTTP, as http://HOST:PORT [default: nowhere]
    #[arg(long, value_name = "URL", value_parser = parse_endpoint)]
    traces: Option<TraceEndpoint>,
    /// Share of operations that are traced, from 0 to 1; the same as on the nodes [default: 0.001]
    #[arg(long, value_name = "SHARE", requires = "traces", value_parser = parse_share)]
    trace_sample: Option<TraceSampling>,
    /// What the gateway is called in traces [default: syros]
    #[arg(long, value_name = "NAME", requires = "traces", value_parser = parse_service_name)]
    trace_service_name: Option<String>,
    /// What else is said of the gateway in traces, as NAME=VALUE; may be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "traces", value_parser = parse_attribute)]
    trace_attribute: Vec<(String, String)>,
    /// Only talk to the cluster with this id, as the nodes' configuration says it [default: any]
    #[arg(long, value_name = "ID", default_value = "0", hide_default_value = true, value_parser = parse_cluster_id)]
    cluster_id: u64,
    /// How long the first replica may take to answer, in seconds
    #[arg(long, value_name = "S", default_value_t = 30)]
    connect_timeout: u64,
    /// Most connections of Redis clients
    #[arg(long, value_name = "N", default_value_t = FrontConfig::default().connections_max, value_parser = parse_connections)]
    connections: usize,
    /// Most connections of Redis clients from one address; 0 for as many as --connections
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_connections_per_address)]
    connections_per_address: usize,
    /// How reads are answered that do not say: auto, leader, meta, quorum or stale
    #[arg(long, value_name = "POLICY", default_value_t = FrontConfig::default().client.read_policy)]
    reads: ReadPolicy,
    /// How updates go that may be fast: auto, fast, thrifty or leader
    #[arg(long, value_name = "POLICY", default_value_t = FrontConfig::default().client.write_policy)]
    writes: WritePolicy,
    #[command(flatten)]
    log: logger::LogOptions,
}

fn parse_address(text: &str) -> Result<String, String> {
    check_address(text).map(|()| text.to_owned())
}

fn parse_cluster_id(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { parse_cluster(text) }
}

fn parse_client_certificates(text: &str) -> Result<ClientCertificates, String> {
    let found = ClientCertificates::ALL.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, whether)| whether).ok_or_else(|| "required, optional or none is expected".to_owned())
}

fn parse_metrics(text: &str) -> Result<SocketAddr, String> {
    listening_address(text)
        .ok_or_else(|| "an IP address and port is expected, such as 127.0.0.1:9121".to_owned())
}

fn parse_connections(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| CONNECTIONS.contains(number));
    let number = number.and_then(|number| usize::try_from(number).ok());
    number
        .ok_or_else(|| format!("a number from {} to {} is expected", CONNECTIONS.start(), CONNECTIONS.end()))
}

fn parse_connections_per_address(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(0) } else { parse_connections(text) }
}

impl Options {
    /// Where traces go, and of which operations.
    fn trace_settings(&self) -> Option<TraceSettings> {
        let sampling = self.trace_sample.or_else(|| TraceSampling::of_share(TraceSettings::SHARE_DEFAULT))?;
        let service_name = self.trace_service_name.as_deref().unwrap_or(TraceSettings::SERVICE_NAME_DEFAULT);
        Some(TraceSettings {
            endpoint: self.traces.clone()?,
            sampling,
            service_name: service_name.to_owned(),
            attributes: self.trace_attribute.clone(),
        })
    }
}

/// Runs the gateway until it is asked to end.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let log = options.log.or(syros_logging::Settings::default());
    let config = match syros_logging::install(&log).and_then(|()| config_of(options)) {
        Ok(config) => config,
        Err(problem) => return Ok(logger::fail_for_good(&problem)),
    };
    let gateway = match GatewayNode::start(config) {
        Ok(gateway) => gateway,
        Err(error) if error.may_pass() => return Err(error.to_string()),
        Err(error) => return Ok(logger::fail_for_good(&error.to_string())),
    };
    let stopper = gateway.stopper();
    signals::watch_as_service(move |signal| stopper.stop(signals::name(signal)))?;
    gateway.run().map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// What the options say.
fn config_of(options: &Options) -> Result<GatewayConfig, String> {
    check_different(&options.cluster).map_err(|problem| format!("--cluster: {problem}"))?;
    let mut front = FrontConfig {
        connections_max: options.connections,
        connections_per_address_max: Some(options.connections_per_address).filter(|most| *most > 0),
        ..FrontConfig::default()
    };
    (front.client.read_policy, front.client.write_policy) = (options.reads, options.writes);
    front.listen_metrics = options.metrics;
    front.traces = options.trace_settings();
    if options.trace_attribute.len() > TRACE_ATTRIBUTES_MAX {
        let count = options.trace_attribute.len();
        return Err(format!("--trace-attribute is there {count} times; {TRACE_ATTRIBUTES_MAX} are the most"));
    }
    front.protected = !options.no_protected_mode;
    front.first_rules = options.password_file.as_deref().map(read_password).transpose()?.unwrap_or_default();
    let listen_redis = (options.port > 0).then(|| SocketAddr::new(options.bind, options.port));
    if listen_redis.is_none() && options.tls_port.is_none() {
        return Err("--port 0 leaves no port for Redis clients: give --tls-port".to_owned());
    }
    if let Some(listen_redis) = listen_redis.filter(|address| options.metrics == Some(*address)) {
        return Err(format!("--metrics {listen_redis} is where Redis clients are listened for, too"));
    }
    Ok(GatewayConfig {
        cluster: options.cluster_id,
        replicas: options.cluster.clone(),
        listen_redis,
        tls: options.tls.files().map(|files| TlsConfig {
            files,
            listen_redis: options.tls_port.map(|port| SocketAddr::new(options.bind, port)),
            redis_clients: options.client_certificates,
            nodes: NodesTls::Required,
        }),
        connect_timeout: Duration::from_secs(options.connect_timeout),
        front,
    })
}
