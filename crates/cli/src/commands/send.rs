use std::path::PathBuf;

use posthaste_jobs::{EventId, Timestamp, chain};
use serde::Serialize;
use serde_json::Value;

use super::sample;
use crate::clock;
use crate::config::{Config, Scope, Settings, Source};
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::post::post;
use crate::print::{Printer, clean};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Who sends: the name of a source in the configuration, whose scheme and first secret sign
    source: String,
    /// The event's type, as in push or payment_intent.succeeded
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// The body, sent byte for byte; without it, a built-in one of this type
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Where the ingress is; without it, at http.listen
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The provider's id of the event; a fresh one when left out. Stripe keeps it in the body, so a
    /// --file has its own
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// What came back, as JSON shows it.
#[derive(Debug, Serialize)]
struct Printed {
    status: u16,
    /// As JSON if it is that, else as text.
    body: Value,
}

/// Signs an event and sends it to a running ingress.
///
/// # Errors
///
/// The answer is no 2xx, or there is none.
pub(crate) async fn run(args: Args, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Sources)?;
    let source = find(&config, &args.source)?;
    let now = clock::now();
    let id = args
        .id
        .unwrap_or_else(|| format!("evt_{}", EventId::new(now, rand::random())));
    let body = match &args.file {
        Some(file) => std::fs::read(file).map_err(|error| {
            Failure::usage(format!("the file {} cannot be read: {error}", file.display()))
        })?,
        None => sample::body(&source.scheme, &args.event_type, &id)?,
    };
    let headers = sign(source, &id, &args.event_type, &body, now)?;
    let base = match args.url {
        Some(url) => url,
        None => address(&config.http.listen)?,
    };
    let url = format!("{}/webhooks/{}", base.trim_end_matches('/'), source.name);
    let answer = post(&url, &headers, body)
        .await
        .map_err(|error| Failure::failed(format!("{error:#}")).hint("posthaste up"))?;

    let mut out = Printer::stdout();
    let text = String::from_utf8_lossy(&answer.body);
    if args.json {
        let body = serde_json::from_slice(&answer.body).unwrap_or_else(|_| Value::from(text));
        out.json(&Printed {
            status: answer.status,
            body,
        })?;
    } else {
        out.line(answer.status)?;
        out.line(clean(&text))?;
    }
    out.finish()?;
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    Err(Failure::failed(format!("the ingress answered {}", answer.status)).hint("its log says why"))
}

fn find<'a>(config: &'a Config, name: &str) -> Result<&'a Source, Failure> {
    if let Some(source) = config.sources.iter().find(|source| source.name == name) {
        return Ok(source);
    }
    let known: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
    let list = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    let failure = Failure::usage(format!("no source is called {name:?}, known: {list}"));
    Err(match nearest(name, known) {
        Some(near) => failure.hint(format!("posthaste send {near}")),
        None => failure.hint("add a [[sources]] entry to posthaste.toml"),
    })
}

fn sign(
    source: &Source,
    id: &str,
    event_type: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<Vec<(String, String)>, Failure> {
    // Only an unsigned source has none, and signs nothing with it.
    let secret = source.secrets.first().map_or("", |secret| secret.expose());
    source
        .scheme
        .sign(secret, id, event_type, body, now)
        .map_err(|error| Failure::usage(format!("source {:?} cannot sign: {}", source.name, chain(&error))))
}

/// Returns where an ingress that listens there can be reached from here.
fn address(listen: &str) -> Result<String, Failure> {
    let (host, port) = listen.rsplit_once(':').unwrap_or((listen, "80"));
    if port == "0" {
        return Err(Failure::usage(
            "http.listen has port 0: the ingress took a free one, its log says which",
        )
        .hint("--url http://127.0.0.1:PORT"));
    }
    let host = match host {
        "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    Ok(format!("http://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use posthaste_ingress::Scheme;

    use super::*;

    #[test]
    fn what_is_sent_is_what_the_source_verifies() {
        let now = clock::now();
        let schemes = [Scheme::Github, Scheme::Stripe, Scheme::StandardWebhooks];
        let types = ["push", "payment_intent.succeeded", "user.created"];
        for (scheme, event_type) in schemes.into_iter().zip(types) {
            let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
            let source = Source {
                name: "shop".to_owned(),
                scheme: scheme.clone(),
                secrets: vec![crate::config::Secret::new(secret)],
                tolerance: None,
                max_body: None,
            };
            let body = sample::body(&scheme, event_type, "evt_1").unwrap();
            let sent: http::HeaderMap = sign(&source, "evt_1", event_type, &body, now)
                .unwrap()
                .into_iter()
                .map(|(name, value)| {
                    (
                        http::HeaderName::try_from(name).unwrap(),
                        http::HeaderValue::try_from(value).unwrap(),
                    )
                })
                .collect();
            let verifier = scheme.verifier(&[secret.to_owned()], None).unwrap().unwrap();

            verifier.verify(&sent, &body, now).unwrap();
            assert!(
                verifier.verify(&sent, b"{}", now).is_err(),
                "another body passes as {event_type}"
            );
        }
    }

    #[test]
    fn an_ingress_on_all_addresses_is_reached_on_the_loopback() {
        assert_eq!(address("0.0.0.0:8080").unwrap(), "http://127.0.0.1:8080");
        assert_eq!(address("[::]:8080").unwrap(), "http://[::1]:8080");
        assert_eq!(address("hooks.internal:80").unwrap(), "http://hooks.internal:80");
        assert!(address("127.0.0.1:0").is_err());
    }
}
