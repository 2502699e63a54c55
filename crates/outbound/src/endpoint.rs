use std::sync::Arc;
use std::time::Duration;

use http::header::{self, AUTHORIZATION, HeaderName};
use http::{HeaderMap, HeaderValue, Uri};
use reqwest::{Client, Method, Request, Url};

use crate::breaker::Breaker;
use crate::call;
use crate::in_flight::InFlight;
use crate::signature::Secret;
use crate::{BreakerConfig, CallError, Delivery, EndpointConfig, InvalidEndpoint, Receipt};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What a caller may have copied from a request that came in, and would contradict the one that goes out.
const NOT_COPIED: [HeaderName; 6] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::EXPECT,
    SIGNATURE,
];

/// One endpoint, its configuration parsed.
pub(crate) struct Endpoint {
    url: Url,
    /// From the user and password in the URL.
    authorization: Option<HeaderValue>,
    timeout: Duration,
    secret: Option<Secret>,
    breaker_config: BreakerConfig,
    breaker: Arc<Breaker>,
    in_flight: Arc<InFlight>,
}

impl Endpoint {
    /// Parses `config`, taking over from `earlier` what it has learnt of the same endpoint.
    ///
    /// The breaker is taken over if its settings and the URL did not change: what was learnt of
    /// another URL says nothing. The calls under way are, if their limit did not change.
    pub(crate) fn new(
        config: &EndpointConfig,
        client: &Client,
        earlier: Option<&Self>,
    ) -> Result<Self, InvalidEndpoint> {
        config.validate()?;
        let (url, authorization) = parse_url(config, client)?;
        let secret = config.signing_secret.as_deref().map(|text| {
            let problem = "must be base64, with or without `whsec_` before it, and not empty";
            Secret::parse(text).ok_or_else(|| config.invalid("signing_secret", problem))
        });
        let breaker = earlier
            .filter(|earlier| earlier.breaker_config == config.breaker && earlier.url == url)
            .map(|earlier| Arc::clone(&earlier.breaker));
        let in_flight = earlier
            .filter(|earlier| earlier.in_flight.limit() == config.max_in_flight)
            .map(|earlier| Arc::clone(&earlier.in_flight));

        Ok(Self {
            url,
            authorization,
            timeout: config.timeout,
            secret: secret.transpose()?,
            breaker_config: config.breaker,
            breaker: breaker.unwrap_or_else(|| Arc::new(Breaker::new(&config.name, config.breaker))),
            in_flight: in_flight.unwrap_or_else(|| Arc::new(InFlight::new(config.max_in_flight))),
        })
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Sends `delivery` if breaker and in-flight limit let it.
    pub(crate) async fn deliver(&self, client: &Client, delivery: Delivery) -> Result<Receipt, CallError> {
        if let Some(retry_in) = self.breaker.rejects() {
            return Err(CallError::CircuitOpen { retry_in });
        }
        let slot = self.in_flight.enter().await;
        let slot = slot.map_err(|retry_in| CallError::Busy { retry_in })?;
        // Asked only here, since the circuit may have opened while this call waited for its slot.
        let admission = self.breaker.admit();
        let admission = admission.map_err(|retry_in| CallError::CircuitOpen { retry_in })?;

        let now = delivery.timestamp;
        let result = call::send(client, self.request(delivery), self.timeout, now).await;

        slot.called();
        if let Some(failed) = result
            .as_ref()
            .map_or_else(CallError::blames_endpoint, |_| Some(false))
        {
            admission.ended(failed);
        }
        result
    }

    fn request(&self, delivery: Delivery) -> Request {
        let Delivery {
            id,
            timestamp,
            headers,
            body,
        } = delivery;
        let mut request = Request::new(Method::POST, self.url.clone());

        *request.headers_mut() = self.headers(headers, id_value(&id), HeaderValue::from(timestamp), &body);
        *request.body_mut() = Some(body.into());
        request
    }

    fn headers(&self, mut headers: HeaderMap, id: HeaderValue, time: HeaderValue, body: &[u8]) -> HeaderMap {
        for name in NOT_COPIED {
            headers.remove(name);
        }
        if let Some(secret) = &self.secret {
            headers.insert(SIGNATURE, secret.sign(id.as_bytes(), time.as_bytes(), body));
        }
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers.insert(ID, id);
        headers.insert(TIMESTAMP, time);
        headers
    }
}

fn id_value(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or_else(|_| {
        let visible: Vec<u8> = id.bytes().filter(u8::is_ascii_graphic).collect();
        HeaderValue::from_bytes(&visible).expect("only visible ASCII is left")
    })
}

/// Returns the URL without user and password, and the header that carries them.
fn parse_url(
    config: &EndpointConfig,
    client: &Client,
) -> Result<(Url, Option<HeaderValue>), InvalidEndpoint> {
    let invalid = |problem| config.invalid("url", problem);
    let url = Url::parse(&config.url).map_err(|_| invalid("is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("must begin with http:// or https://"));
    }
    let mut request = client
        .post(url)
        .build()
        .map_err(|_| invalid("cannot be called"))?;
    request
        .url()
        .as_str()
        .parse::<Uri>()
        .map_err(|_| invalid("cannot be called"))?;

    let authorization = request.headers_mut().remove(AUTHORIZATION);
    Ok((request.url().clone(), authorization))
}
