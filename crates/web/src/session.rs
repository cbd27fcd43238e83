//! Requests and their answers.

#[cfg(feature = "analyze")]
use crate::analyze::{Analyses, Host, Stretch};
#[cfg(feature = "engine")]
use crate::engine::Engine;
use serde::Deserialize;
use serde_json::{json, Value};
#[cfg(feature = "analyze")]
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
enum Request {
    Version {},
    #[cfg(feature = "engine")]
    Check {
        scenario: String,
    },
    #[cfg(feature = "engine")]
    Start {
        scenario: String,
    },
    #[cfg(feature = "engine")]
    Advance {
        events: u64,
    },
    #[cfg(feature = "engine")]
    Finish {
        points: usize,
    },
    #[cfg(feature = "analyze")]
    Analyze {
        files: Vec<crate::analyze::Given>,
        settings: Value,
    },
    #[cfg(feature = "analyze")]
    Explore {
        files: Vec<crate::analyze::Given>,
        settings: Value,
        stretches: Vec<Stretch>,
    },
}

/// A page's session.
#[derive(Default)]
pub struct Session {
    #[cfg(feature = "engine")]
    engine: Engine,
    #[cfg(feature = "analyze")]
    analyses: Analyses,
}

impl Session {
    /// A session whose files are read of a host.
    #[cfg(feature = "analyze")]
    pub fn with(host: Arc<dyn Host>) -> Self {
        Session { analyses: Analyses::with(host), ..Session::default() }
    }

    /// Answers a request; both are JSON.
    pub fn call(&mut self, request: &str) -> String {
        let request = match serde_json::from_str(request) {
            Ok(request) => request,
            Err(error) => return json!({ "error": format!("the request cannot be understood: {error}") }).to_string(),
        };
        self.answer(request).unwrap_or_else(|error| json!({ "error": error }).to_string())
    }

    fn answer(&mut self, request: Request) -> Result<String, String> {
        let answer: Value = match request {
            Request::Version {} => json!({ "version": env!("CARGO_PKG_VERSION") }),
            #[cfg(feature = "engine")]
            Request::Check { scenario } => Engine::check(&scenario),
            #[cfg(feature = "engine")]
            Request::Start { scenario } => self.engine.start(&scenario)?,
            #[cfg(feature = "engine")]
            Request::Advance { events } => self.engine.advance(events)?,
            #[cfg(feature = "engine")]
            Request::Finish { points } => self.engine.finish(points)?,
            // As text: the keys of a report stay in the order that the command line gives them.
            #[cfg(feature = "analyze")]
            Request::Analyze { files, settings } => return self.analyses.analyze(files, settings),
            #[cfg(feature = "analyze")]
            Request::Explore { files, settings, stretches } => return self.analyses.explore(files, settings, stretches),
        };
        Ok(answer.to_string())
    }
}
