/** Reads `text/event-stream` as the HTML standard has it, piece by piece. Pure. */
export interface StreamFrame {
  /** `message` unless the server named it. */
  readonly event: string
  /** Undefined for a frame that only moves the id on, or only shows that the connection lives. */
  readonly data: string | undefined
  readonly id: string | undefined
  /** How long to wait before connecting again, if the server said so. */
  readonly retryMs: number | undefined
}

/** Gives the frames that a piece of text completes. */
export function createFrameReader(): (text: string) => StreamFrame[] {
  let unread = ''
  let lines: string[] = []

  return (text) => {
    const frames: StreamFrame[] = []
    const parts = (unread + text).split(LINE_END)
    unread = parts.pop()!
    for (const line of parts) {
      if (line !== '') lines.push(line)
      else if (lines.length > 0) {
        frames.push(toFrame(lines))
        lines = []
      }
    }
    return frames
  }
}

/** A return at the very end may be the first half of one line end: it waits for what follows. */
const LINE_END = /\r\n|\n|\r(?!$)/

function toFrame(lines: readonly string[]): StreamFrame {
  const data: string[] = []
  let event = 'message'
  let id: string | undefined
  let retryMs: number | undefined
  for (const line of lines) {
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'data') data.push(value)
    else if (field === 'event') event = value
    else if (field === 'id') id = value
    else if (field === 'retry' && /^\d+$/.test(value)) retryMs = Number(value)
  }
  return { event, id, retryMs, data: data.length === 0 ? undefined : data.join('\n') }
}
