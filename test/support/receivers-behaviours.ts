/** Receivers that nobody would want to call. Each takes what it is sent and then behaves badly, for as long as it lives. */
import { httpReceiver, tcpReceiver } from './receivers.ts'

interface BadReceiver {
  readonly url: string
  /** Connections made so far. */
  readonly connections: number
  /** Connections that are open now. */
  readonly open: number
}

/** Takes the request and never answers. */
export function hangingReceiver(): Promise<BadReceiver> {
  return tcpReceiver(() => {})
}

/** Answers a letter at a time, and its headers have no end. */
export function drippingReceiver(): Promise<BadReceiver> {
  return tcpReceiver((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-drip: ')
    const drip = setInterval(() => socket.write('.'), 50)
    socket.on('close', () => clearInterval(drip))
  })
}

/** Answers 200 with a body that is as long as anybody listens. */
export function endlessReceiver(): Promise<BadReceiver> {
  const piece = Buffer.alloc(16_384, '.')
  return tcpReceiver((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    const pour = () => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', pour)
    pour()
  })
}

/** Sends whoever calls back to itself. */
export async function redirectingReceiver(): Promise<BadReceiver> {
  return httpReceiver((response, { path }) => response.writeHead(307, { location: `${path}/again` }).end())
}

/** Answers 500. */
export async function brokenReceiver(): Promise<BadReceiver> {
  return httpReceiver((response) => response.writeHead(500).end('broken'))
}
