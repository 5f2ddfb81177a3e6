//! The echo on tokio's current-thread runtime, in four styles (`--style`):
//!
//! * `tasks`: one task per connection, `read().await`. tokio's own `poll_read` takes a short read as an
//!   emptied socket, which saves the read that would find nothing.
//! * `try`: the same with `readable()` and `try_read`, which must meet `WouldBlock` before it waits.
//! * `flusher`: reader tasks fill the output buffers, one flusher task at the tail of the run queue writes.
//! * `scan`: one future owns all connections and tries each of them whenever it is woken.
//!
//! `--event-interval N` is the runtime's own knob (tasks polled between two looks at epoll, default 61).

use echo::{Buffers, Core, Counters, option, print_counters};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

#[derive(Default)]
struct Shared {
    core: Core,
    counters: Counters,
    /// For `flusher` alone: connections with replies to write, and the task that writes them.
    dirty: Vec<Arc<Slot>>,
}

/// One connection of the `flusher` style.
type Slot = Mutex<(TcpStream, Buffers)>;

// A thread-local instead of `Rc` and `LocalSet`: `tokio::spawn` wants futures that are `Send`, and the
// `LocalSet` would add a second run queue to every wake.
thread_local! {
    static SHARED: RefCell<Shared> = RefCell::default();
}

fn invalid(length: usize) -> Error {
    Error::new(ErrorKind::InvalidData, format!("frame of {length} bytes"))
}

fn handle(buffers: &mut Buffers, count: usize) -> Result<()> {
    SHARED.with_borrow_mut(|shared| {
        shared.counters.reads += 1;
        buffers.received(count, |body, output| shared.core.handle(body, output)).map_err(invalid)
    })
}

async fn flush(stream: &TcpStream, buffers: &mut Buffers) -> Result<()> {
    while !buffers.output.is_empty() {
        SHARED.with_borrow_mut(|shared| shared.counters.writes += 1);
        match stream.try_write(&buffers.output) {
            Ok(count) => buffers.sent(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn serve_tasks(mut stream: TcpStream) -> Result<()> {
    let mut buffers = Buffers::default();
    loop {
        let count = stream.read(buffers.space()).await?;
        if count == 0 {
            return Ok(());
        }
        handle(&mut buffers, count)?;
        flush(&stream, &mut buffers).await?;
    }
}

async fn serve_try(stream: TcpStream) -> Result<()> {
    let mut buffers = Buffers::default();
    loop {
        stream.readable().await?;
        loop {
            match stream.try_read(buffers.space()) {
                Ok(0) => return Ok(()),
                Ok(count) => handle(&mut buffers, count)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            if buffers.is_clogged() {
                flush(&stream, &mut buffers).await?;
            }
        }
        SHARED.with_borrow_mut(|shared| shared.counters.reads += 1);
        flush(&stream, &mut buffers).await?;
    }
}

async fn serve_flusher(stream: TcpStream, notify: Arc<Notify>) -> Result<()> {
    let slot: Arc<Slot> = Arc::new(Mutex::new((stream, Buffers::default())));
    loop {
        let count = poll_fn(|context| {
            // A poisoned lock cannot be met: a panic aborts the process.
            let (stream, buffers) = &mut *slot.lock().expect("unpoisoned");
            let mut into = ReadBuf::new(buffers.space());
            Pin::new(stream).poll_read(context, &mut into).map_ok(|()| into.filled().len())
        });
        let count = count.await?;
        if count == 0 {
            return Ok(());
        }
        handle(&mut slot.lock().expect("unpoisoned").1, count)?;
        let is_first = SHARED.with_borrow_mut(|shared| {
            shared.dirty.push(slot.clone());
            shared.dirty.len() == 1
        });
        if is_first {
            notify.notify_one();
        }
    }
}

async fn run_flusher(notify: Arc<Notify>) {
    let mut dirty = Vec::with_capacity(256);
    loop {
        notify.notified().await;
        SHARED.with_borrow_mut(|shared| std::mem::swap(&mut dirty, &mut shared.dirty));
        for slot in dirty.drain(..) {
            let (stream, buffers) = &mut *slot.lock().expect("unpoisoned");
            SHARED.with_borrow_mut(|shared| shared.counters.writes += 1);
            // An echo's replies are far below the socket's buffer; an error shows at the next read.
            if let Ok(count) = stream.try_write(&buffers.output) {
                buffers.sent(count);
            }
        }
    }
}

/// One pass over all connections of the `scan` style. Ready when the last one has closed.
fn poll_scan(
    listener: &TcpListener,
    connections: &mut Vec<(TcpStream, Buffers)>,
    context: &mut Context<'_>,
) -> Poll<Result<()>> {
    while let Poll::Ready(accepted) = listener.poll_accept(context) {
        let (stream, _) = accepted?;
        stream.set_nodelay(true)?;
        connections.push((stream, Buffers::default()));
    }
    let before = connections.len();
    connections.retain_mut(|(stream, buffers)| {
        loop {
            let space = buffers.space();
            let mut into = ReadBuf::new(space);
            match Pin::new(&mut *stream).poll_read(context, &mut into) {
                Poll::Pending => return true,
                Poll::Ready(Err(_)) => return false,
                Poll::Ready(Ok(())) => {
                    let count = into.filled().len();
                    if count == 0 || handle(buffers, count).is_err() {
                        return false;
                    }
                }
            }
        }
    });
    for (stream, buffers) in &mut *connections {
        if !buffers.output.is_empty() {
            SHARED.with_borrow_mut(|shared| shared.counters.writes += 1);
            if let Ok(count) = stream.try_write(&buffers.output) {
                buffers.sent(count);
            }
        }
    }
    if connections.is_empty() && before > 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
}

async fn serve(style: String) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    if style == "scan" {
        let mut connections = Vec::new();
        // Every read of a pass draws on the task's budget of 128 operations; unconstrained, it has none.
        let scan = poll_fn(move |context| poll_scan(&listener, &mut connections, context));
        return tokio::task::unconstrained(scan).await;
    }
    let notify = Arc::new(Notify::new());
    if style == "flusher" {
        tokio::spawn(run_flusher(notify.clone()));
    }
    let (ended, mut endings) = mpsc::unbounded_channel();
    let mut open = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                open += 1;
                let (style, notify, ended) = (style.clone(), notify.clone(), ended.clone());
                tokio::spawn(async move {
                    // A connection that fails is a connection that ends: the load has gone.
                    let _ = match style.as_str() {
                        "tasks" => serve_tasks(stream).await,
                        "try" => serve_try(stream).await,
                        "flusher" => serve_flusher(stream, notify).await,
                        other => panic!("--style {other} is none of tasks, try, flusher, scan"),
                    };
                    let _ = ended.send(());
                });
            }
            _ = endings.recv() => {
                open -= 1;
                if open == 0 {
                    return Ok(());
                }
            }
        }
    }
}

fn main() -> Result<()> {
    // No timer is enabled: the echo needs none, and so tokio does not pay for one here.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .event_interval(option("--event-interval", 61))
        .build()?;
    runtime.block_on(async { tokio::spawn(serve(option("--style", String::from("tasks")))).await })??;
    SHARED.with_borrow(|shared| print_counters(&shared.core, &shared.counters));
    Ok(())
}
