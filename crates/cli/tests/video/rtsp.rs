//! A small RTSP server: it passes the packets that ffmpeg sends on to each client, over the client's own connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Killed;

pub(crate) struct RtspServer {
    dir: PathBuf,
    port: u16,
    /// The port to which ffmpeg sends.
    packets: u16,
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl RtspServer {
    pub(crate) fn start(dir: &Path) -> RtspServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = RtspServer {
            dir: dir.to_owned(),
            port: listener.local_addr().unwrap().port(),
            packets: socket.local_addr().unwrap().port(),
            clients: Arc::default(),
        };
        let (clients, sdp) = (Arc::clone(&server.clients), dir.join("live.sdp"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (clients, sdp) = (Arc::clone(&clients), sdp.clone());
                std::thread::spawn(move || serve(&stream, &clients, &sdp));
            }
        });
        let clients = Arc::clone(&server.clients);
        std::thread::spawn(move || {
            let mut packet = [0; 4 + 2048];
            while let Ok(count) = socket.recv(&mut packet[4..]) {
                let length = u16::try_from(count).unwrap().to_be_bytes();
                packet[..4].copy_from_slice(&[b'$', 0, length[0], length[1]]);
                let mut clients = clients.lock().unwrap();
                clients.retain_mut(|client| client.write_all(&packet[..4 + count]).is_ok());
            }
        });
        server
    }

    pub(crate) fn address(&self) -> String {
        format!("rtsp://127.0.0.1:{}/live", self.port)
    }

    pub(crate) fn send(&self) -> Killed {
        self.send_from("-f lavfi -i testsrc2=s=160x120:r=15")
    }

    /// Starts sending what these options of ffmpeg read. Connections from before are closed, as by a server that is
    /// started anew.
    pub(crate) fn send_from(&self, input: &str) -> Killed {
        self.clients.lock().unwrap().clear();
        let sdp = self.dir.join("live.sdp");
        let _ = std::fs::remove_file(&sdp);
        let options = format!(
            "-re {input} -c:v libx264 -preset ultrafast -tune zerolatency -g 8 -sdp_file live.sdp -f rtp \
             rtp://127.0.0.1:{}?pkt_size=1200",
            self.packets
        );
        let sender = Killed::ffmpeg(&self.dir, &options);
        super::wait_until("the stream is described", || std::fs::read(&sdp).is_ok_and(|sdp| sdp.ends_with(b"\n")));
        sender
    }
}

fn serve(stream: &TcpStream, clients: &Mutex<Vec<TcpStream>>, sdp: &Path) {
    let (mut lines, mut answer) = (BufReader::new(stream.try_clone().unwrap()), stream.try_clone().unwrap());
    let (mut method, mut number) = (String::new(), String::new());
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim();
        if line.ends_with("RTSP/1.0") {
            line.split(' ').next().unwrap_or_default().clone_into(&mut method);
        } else if let Some(own) = line.strip_prefix("CSeq: ") {
            own.clone_into(&mut number);
        } else if line.is_empty() && !method.is_empty() {
            let head = format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\nSession: 1\r\n");
            let rest = match method.as_str() {
                "OPTIONS" => "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n\r\n".to_owned(),
                "DESCRIBE" => {
                    let text = std::fs::read_to_string(sdp).unwrap_or_default();
                    let text = text.trim_start_matches("SDP:").trim_start();
                    format!("Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{text}", text.len())
                }
                "SETUP" => "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n".to_owned(),
                _ => "\r\n".to_owned(),
            };
            let _ = answer.write_all(format!("{head}{rest}").as_bytes());
            if method == "PLAY" {
                let client = stream.try_clone().unwrap();
                client.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
                clients.lock().unwrap().push(client);
            }
            method.clear();
        }
    }
}
