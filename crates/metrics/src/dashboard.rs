//! The files of the dashboard, as they are in the source tree: there is nothing to build, and they ask for nothing that this
//! process does not have.

/// A file of the dashboard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Where it is.
    pub(crate) path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

/// The page itself.
pub(crate) const PAGE: File = File {
    path: "/",
    content_type: "text/html; charset=utf-8",
    text: include_str!("../dashboard/index.html"),
};

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All files.
pub(crate) const FILES: [File; 9] = [
    PAGE,
    File { path: "/dashboard", ..PAGE },
    File {
        path: "/dashboard.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("../dashboard/dashboard.css"),
    },
    File { path: "/icon.svg", content_type: "image/svg+xml", text: include_str!("../dashboard/icon.svg") },
    File { path: "/dashboard.js", content_type: SCRIPT, text: include_str!("../dashboard/dashboard.js") },
    File { path: "/draw.js", content_type: SCRIPT, text: include_str!("../dashboard/draw.js") },
    File { path: "/history.js", content_type: SCRIPT, text: include_str!("../dashboard/history.js") },
    File { path: "/alerts.js", content_type: SCRIPT, text: include_str!("../dashboard/alerts.js") },
    File {
        path: "/runbooks.md",
        content_type: "text/plain; charset=utf-8",
        text: include_str!("../../../docs/operate/runbooks.md"),
    },
];

/// What browsers are told of everything that people look at: no script, style or picture but those of this process, and no data
/// to anybody else.
pub(crate) const HEADERS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n";

/// The file at a path.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}
