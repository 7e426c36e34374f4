/**
 * One loop for all pages that are open in this process: it looks once a second while somebody watches, and pushes what it
 * saw. Nobody watches: no statement. A page that does not read is cut off, so it cannot fill the memory.
 */
import type { Aftercommit, AftercommitEvent } from '../index.ts'
import { plain, Refusal, SECURITY_HEADERS } from './answers.ts'
import { toLine } from './api/events.ts'

export interface WatchOptions {
  /** New events, too. */
  readonly tails: boolean
  readonly withPayload: boolean
  readonly signal: AbortSignal
  /** Asked with every look: a stream ends with the session that opened it. */
  isStillAllowed(): Promise<boolean>
}

/** Events recorded in a second, oldest first; the last ten minutes in which somebody watched. */
export interface Rates {
  readonly everySeconds: number
  readonly events: readonly number[]
}

export interface Watch {
  open(options: WatchOptions): Response
  rates(): Rates
  close(): void
}

const LOOK_EVERY_MS = 1_000
const BADGES_EVERY = 5
const MOST_ROWS = 50
const MOST_WAITING = 64
const MOST_PAGES = 200
const KEPT_SECONDS = 600

interface Page {
  readonly options: WatchOptions
  send(name: string, data: unknown): void
  end(): void
}

export function createWatch(ac: Aftercommit): Watch {
  const pages = new Set<Page>()
  const rates: number[] = []
  let timer: NodeJS.Timeout | undefined
  let isLooking = false
  let looks = 0
  let head: bigint | undefined
  let badges: Badges | undefined

  function start(): void {
    if (timer !== undefined) return
    timer = setInterval(() => void look(), LOOK_EVERY_MS)
    timer.unref()
    void look()
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
    head = undefined
  }

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      const log = await ac.log.status()
      if (looks++ % BADGES_EVERY === 0 || badges === undefined) badges = await readBadges(ac)
      const events = await newEvents(log.head)
      const status = { ...(plain(log) as object), at: new Date().toISOString(), ...badges }
      for (const page of [...pages]) {
        if (!(await page.options.isStillAllowed().catch(() => false))) {
          page.end()
          continue
        }
        page.send('status', status)
        if (page.options.tails && events.rows.length > 0) {
          page.send('events', {
            items: events.rows.map((event) => toLine(event, page.options.withPayload)),
            more: events.more,
          })
        }
      }
    } catch {
      for (const page of [...pages]) page.send('down', { message: 'The database does not answer.' })
    } finally {
      isLooking = false
    }
  }

  /** Newest first, and how many more there were. */
  async function newEvents(now: bigint): Promise<{ rows: AftercommitEvent[]; more: number }> {
    const before = head
    head = now
    if (before === undefined) return { rows: [], more: 0 }
    const arrived = Number(now - before)
    rates.push(Math.max(0, arrived))
    if (rates.length > KEPT_SECONDS) rates.shift()
    if (arrived <= 0 || ![...pages].some(({ options }) => options.tails)) return { rows: [], more: 0 }
    const rows = (await ac.log.list({ limit: MOST_ROWS })).filter(
      ({ position, type }) => position > before && !type.startsWith('aftercommit.'),
    )
    return { rows, more: Math.max(0, arrived - MOST_ROWS) }
  }

  function open(options: WatchOptions): Response {
    if (pages.size >= MOST_PAGES) throw new Refusal(503, 'TOO_MANY_STREAMS', 'Too many pages watch this process.')
    const encoder = new TextEncoder()
    let page: Page
    const body = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          let isOver = false
          const end = () => {
            if (isOver) return
            isOver = true
            pages.delete(page)
            if (pages.size === 0) stop()
            try {
              controller.close()
            } catch {}
          }
          page = {
            options,
            send(name, data) {
              if (isOver) return
              if ((controller.desiredSize ?? 0) <= -MOST_WAITING) {
                // An error lets go of what waits; a plain end would keep it until somebody reads.
                controller.error(new Error('The stream was not read.'))
                return end()
              }
              controller.enqueue(encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`))
            },
            end,
          }
          pages.add(page)
          if (options.signal.aborted) return end()
          options.signal.addEventListener('abort', end, { once: true })
          controller.enqueue(encoder.encode('retry: 2000\n\n'))
          start()
        },
        cancel: () => page.end(),
      },
      { highWaterMark: 8 },
    )
    return new Response(body, {
      headers: {
        ...SECURITY_HEADERS,
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      },
    })
  }

  return {
    open,
    rates: () => ({ everySeconds: 1, events: [...rates] }),
    close() {
      stop()
      for (const page of [...pages]) page.end()
    },
  }
}

/** What changes slowly: asked for every few looks. */
interface Badges {
  readonly processes: number
  readonly server: string
  /** Shown in the navigation while something is wrong. */
  readonly badges: Readonly<Record<'dead_letters' | 'subscriptions' | 'destinations', number>>
}

async function readBadges(ac: Aftercommit): Promise<Badges> {
  const [{ processes, server }, deadLetters, subscriptions, destinations] = await Promise.all([
    ac.status(),
    ac.deadLetters.count({ status: 'dead', atMost: 1_001 }),
    ac.subscriptions.list(),
    ac.deliveries.destinations(),
  ])
  return {
    processes: processes.length,
    server: server.version,
    badges: {
      dead_letters: deadLetters,
      subscriptions: subscriptions.filter(({ status }) => status !== 'active').length,
      destinations: destinations.filter(({ circuit, paused }) => circuit !== 'closed' || paused).length,
    },
  }
}
