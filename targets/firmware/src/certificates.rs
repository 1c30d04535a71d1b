//! When the certificates end by which the device and the server know each other: told in time.

use core::fmt;

use picokube_config::Configuration;
use picokube_core::metrics::Exposition;
use picokube_core::time::Timestamp;
use picokube_driver::runtime::Runtime;
use picokube_tls::Facts;

/// So long before one ends it is told, in seconds: 30 days.
const AHEAD: u64 = 30 * DAY;
/// How often it is told then.
const DAY: u64 = 86_400;

/// The certificates of a connection.
const NAMES: [&str; 3] = ["client certificate", "server's certificate", "certificate authority"];

/// When they end, in seconds since 1970, as far as that is known: in the order of [`NAMES`].
pub(crate) type Ends = [Option<u64>; 3];

/// When those on the page end, and that by which the server has proved itself.
///
/// Of several authorities, it is the last one that counts: the others may be on their way out.
pub(crate) fn ends(configuration: &Configuration<'_>, server: Option<u64>) -> Ends {
    let Some(tls) = &configuration.tls else { return Ends::default() };
    let end = |certificate: &&[u8]| Facts::of(certificate).map(|facts| facts.not_after);
    let own = tls.identity.as_ref().and_then(|identity| identity.chain.as_slice().first());
    let authorities = tls.authorities.as_slice().iter().filter_map(end);
    [own.and_then(end), server, authorities.max()]
}

/// Writes them as metrics.
pub(crate) fn write_metrics(ends: &Ends, page: &mut Exposition<'_>) -> fmt::Result {
    let names = [
        "picokube_client_certificate_expiration_timestamp_seconds",
        "picokube_server_certificate_expiration_timestamp_seconds",
        "picokube_certificate_authority_expiration_timestamp_seconds",
    ];
    for ((name, which), end) in names.into_iter().zip(NAMES).zip(ends) {
        if let Some(end) = end {
            page.single(name, "gauge", which, *end)?;
        }
    }
    Ok(())
}

/// Tells of those that end soon, by a line of the log and an event: once a day.
#[derive(Default)]
pub(crate) struct Teller {
    /// When each was told of.
    told: Ends,
}

impl Teller {
    /// Looks at them. Until the server has said what time it is, there is nothing to tell.
    pub(crate) fn look(
        &mut self,
        ends: &Ends,
        configuration: &Configuration<'_>,
        runtime: &Runtime<'_>,
    ) {
        let Some(now) = runtime.wall_time() else { return };
        let seconds = now.as_secs().max(0).unsigned_abs();
        for ((which, end), told) in NAMES.into_iter().zip(ends).zip(&mut self.told) {
            let Some(end) = end.filter(|end| end.saturating_sub(seconds) < AHEAD) else { continue };
            if told.is_some_and(|told| seconds.saturating_sub(told) < DAY) {
                continue;
            }
            *told = Some(seconds);
            let at = Timestamp::from_secs(end.cast_signed());
            let text = at.rfc3339();
            defmt::warn!("the {=str} ends at {}: renew it", which, defmt::Display2Format(&text));
            let namespace = configuration.namespace.unwrap_or("default");
            runtime.tell_certificate_ends(configuration.identity, namespace, which, at);
        }
    }
}
