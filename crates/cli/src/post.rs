//! Sends one request to an ingress, as a provider would.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use serde_json::Value;

/// How long the ingress may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the ingress answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns the text under a key of the JSON body; empty if there is none.
    pub(crate) fn field(&self, key: &str) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body[key].as_str().unwrap_or_default().to_owned()
    }
}

/// Posts `body`, and returns what came back, whatever its status.
///
/// # Errors
///
/// There is no answer. The error says nothing of the URL, which may hold a password.
pub(crate) async fn post(url: &str, headers: &[(String, String)], body: impl Into<Bytes>) -> Result<Answer> {
    let unreachable = |error: reqwest::Error| {
        anyhow::Error::new(error.without_url()).context("the ingress cannot be reached")
    };
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .map_err(unreachable)?;
    let mut request = client.post(url).body(body.into());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "plays the provider: no endpoint, so no breaker"
    )]
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    Ok(Answer {
        status,
        body: response.bytes().await.map_err(unreachable)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_not_there_is_empty() {
        let answer = Answer {
            status: 200,
            body: Bytes::from_static(br#"{"status":"accepted"}"#),
        };

        assert_eq!(answer.field("status"), "accepted");
        assert_eq!(answer.field("event_id"), "");
        assert_eq!(
            Answer {
                body: Bytes::from_static(b"gone"),
                ..answer
            }
            .field("status"),
            ""
        );
    }
}
