//! Checks of transports that need more than their own settings.

use crate::doc::Parts;
use crate::Nic;
use fanin_params::{Cx, Param, Problem};
use fanin_transport::{CheckSite, TransportConfig, TransportParams};

pub(super) use fanin_params::shown;

/// Checks one transport, with everything that takes space in its frames; `cx` is at its table.
pub(super) fn check(config: &TransportConfig, parts: &Parts, cx: &mut Cx) {
    let queues_at_hosts = parts.host.as_ref().is_none_or(|host| matches!(host.nic, Nic::Fifo(_)));
    config.check(cx, &CheckSite { trailer: parts.trailer(), ip: parts.ip(), queues_at_hosts });
}

/// Records a warning about `value` at `key`.
pub(super) fn warn<'a>(cx: &'a mut Cx, key: &str, value: &impl Param, message: impl Into<String>) -> &'a mut Problem {
    cx.warn_at(key, value, message)
}
