/** The receipt of one event: what is open on top, then one timeline from COMMIT on a logarithmic axis. */
import type { ComponentChildren } from 'preact'
import type { Action, Reaction, Receipt } from '../api.ts'
import { number, span } from '../format.ts'
import { Act, Command, Glyph, Head, Json, Section, StateGlyph, Time, To, Waiting, WORDS } from '../parts.tsx'
import { useRead } from '../state.tsx'

export function EventPage({ id }: { id: string }) {
  const loaded = useRead<Receipt>(`events/${encodeURIComponent(id)}`, 3_000)
  return (
    <Waiting from={loaded}>
      {(receipt) => {
        const { event, sentence, is_settled } = receipt
        const aggregate = event.aggregate_type === null ? null : `${event.aggregate_type}/${event.aggregate_id}`
        const [first, ...rest] = sentence.split('. ')
        return (
          <>
            <Head
              crumb={
                <>
                  <To to="events">Events</To>
                  {aggregate !== null && (
                    <>
                      {' '}
                      / <To to={`events?aggregate=${encodeURIComponent(aggregate)}`}>{aggregate}</To>
                    </>
                  )}
                </>
              }
              title={
                <>
                  <span class="type">{event.type}</span>{' '}
                  {aggregate !== null && <span class="title-2 mono">{aggregate}</span>}
                </>
              }
              sentence={
                rest.length > 0 ? (
                  <>
                    <b class={is_settled ? '' : 't-wait'}>{first}.</b> {rest.join('. ')}
                  </>
                ) : (
                  sentence
                )
              }
            />
            <div class="rcpt">
              <div>
                {receipt.open.length > 0 && <OpenList receipt={receipt} onDone={loaded.reload} />}
                <Thread receipt={receipt} />
                {receipt.notes.map((note) => (
                  <p class="faint" key={note} data-pad>
                    {note}
                  </p>
                ))}
              </div>
              <Side receipt={receipt} aggregate={aggregate} />
            </div>
          </>
        )
      }}
    </Waiting>
  )
}

function OpenList({
  receipt: { open, subscriptions, observers, work },
  onDone,
}: {
  receipt: Receipt
  onDone: () => void
}) {
  const reactions: Reaction[] = [...subscriptions, ...observers.flatMap(({ actions }) => actions), ...work]
  return (
    <section class="open-list" aria-label="Still open">
      {open.map(({ what, why, command }) => {
        const isDead = command?.includes('dlq redrive') === true
        const ids = isDead ? command!.split(' ').filter((word) => /^\d+$/.test(word)) : []
        const destination = /--destination '(.+)'$/.exec(command ?? '')?.[1]
        const known = ids.every((id) => reactions.some(({ dead_letter }) => dead_letter === id))
        return (
          <div class="open-item" key={what}>
            <Glyph name={isDead ? 'dead' : 'wait'} />
            <div>
              <b>{what}.</b>
              <p>{why}</p>
              {command !== null && (
                <Command text={command}>
                  {ids.length > 0 && known && (
                    <Act
                      small
                      label={ids.length === 1 ? 'Redrive' : `Redrive ${ids.length}`}
                      path="dead-letters/redrive"
                      body={{ ids }}
                      onDone={onDone}
                    />
                  )}
                  {destination !== undefined && (
                    <Act small label="Probe now" path="destinations/resume" body={{ destination }} onDone={onDone} />
                  )}
                </Command>
              )}
            </div>
          </div>
        )
      })}
    </section>
  )
}

function Thread({ receipt }: { receipt: Receipt }) {
  const { event, subscriptions, other_subscriptions, observers, work, caused, complete, searched_to } = receipt
  const start = new Date(event.recorded_at).getTime()
  const end = new Date(receipt.as_of).getTime()
  const axis = createAxis(end - start)
  const since = (at: string | null) => (at === null ? null : new Date(at).getTime() - start)
  const acting = observers.filter(({ actions }) => actions.length > 0)
  const looked = observers.filter(
    ({ actions, verdict }) => actions.length === 0 && verdict !== 'type' && verdict !== 'entity',
  )
  const others = observers.length - acting.length - looked.length
  return (
    <ol class="thread" aria-label="What followed">
      <li class="n-row commit">
        <span class="at">
          <Time at={event.recorded_at} />
        </span>
        <span class="mk" />
        <div class="wh">
          COMMIT <span class="meta">position {number(event.position)}</span>
        </div>
        <span class="tp">
          <svg viewBox="0 0 236 28" aria-hidden="true">
            {axis.ticks.map(({ x, label }) => (
              <text key={label} class="axis" x={x} y="14" text-anchor="middle">
                {label}
              </text>
            ))}
          </svg>
        </span>
      </li>
      {(subscriptions.length > 0 || other_subscriptions > 0) && (
        <Group
          title="Subscriptions"
          note={`${subscriptions.length} of ${subscriptions.length + other_subscriptions} take it`}
        />
      )}
      {subscriptions.map((one) => (
        <Row
          key={one.id}
          reaction={one}
          since={since(one.at)}
          axis={axis}
          name={
            <To class="name" to={`subscriptions?id=${encodeURIComponent(one.id)}`}>
              {one.id}
            </To>
          }
          meta={one.derived && one.state === 'done' ? 'handled, by its checkpoint' : WORDS[one.state]}
        />
      ))}
      {observers.length > 0 && (
        <Group
          title="Observers"
          note={`${acting.length} acted, ${looked.length} looked and did not, ${others} are for other types`}
        />
      )}
      {acting.flatMap((observer) =>
        observer.actions.map((action) => (
          <Row
            key={`${observer.observer}/${action.name}`}
            reaction={action}
            since={since(action.at)}
            axis={axis}
            name={<span class="name">{observer.observer}</span>}
            meta={describeAction(action)}
          >
            <Attempts action={action} />
          </Row>
        )),
      )}
      {looked.map((observer) => (
        <li class="n-row quiet" key={observer.observer}>
          <span class="at" />
          <span class="mk">
            <Glyph name="skip" />
          </span>
          <div class="wh">
            <div class="ln">
              <span class="name">{observer.observer}</span>
              <span>{observer.reason}</span>
            </div>
            {observer.parts.length > 0 && (
              <div class="cel">
                {observer.parts.map((part) => (
                  <span key={part.source} class={part.value === false ? 'no' : ''}>
                    {part.source}
                    <i>{part.error ?? (part.value === undefined ? 'absent' : JSON.stringify(part.value))}</i>
                  </span>
                ))}
              </div>
            )}
          </div>
          <span class="tp" />
        </li>
      ))}
      {work.length > 0 && <Group title="Workflows" note="effects and timers that are open or dead" />}
      {work.map((one) => (
        <Row
          key={`${one.workflow.type}/${one.workflow.id} ${one.kind} ${one.name} ${one.delivery}`}
          reaction={one}
          since={since(one.at)}
          axis={axis}
          name={
            <To
              class="name"
              to={`workflows/${encodeURIComponent(one.workflow.type)}/${encodeURIComponent(one.workflow.id)}`}
            >
              {one.workflow.type}/{one.workflow.id}
            </To>
          }
          meta={`${one.kind} ${one.name} ${WORDS[one.state]}`}
        />
      ))}
      {caused.length > 0 && (
        <Group
          title="Caused"
          note={`${caused.length} ${caused.length === 1 ? 'event' : 'events'}; their own receipts are behind the links`}
        />
      )}
      {caused.map((one, at) => (
        <li key={one.id} class={`n-row d${Math.min(one.depth - 1, 2)}${at === caused.length - 1 ? ' last' : ''}`}>
          <span class="at">+{span(since(one.recorded_at)!)}</span>
          <span class="mk">
            <Glyph name="quiet" />
          </span>
          <div class="wh">
            <div class="ln">
              <To class="name" to={`events/${encodeURIComponent(one.id)}`}>
                {one.type}
              </To>
              <span class="meta mono">
                {one.aggregate_type === null ? '' : `${one.aggregate_type}/${one.aggregate_id}`} {number(one.position)}
              </span>
            </div>
          </div>
          <Tape at={since(one.recorded_at)} axis={axis} tone="idle" />
        </li>
      ))}
      {!complete && <Group title="More may follow" note={`searched up to position ${number(searched_to)}`} />}
    </ol>
  )
}

function Group({ title, note }: { title: string; note: string }) {
  return (
    <li class="n-row grp">
      <span class="at" />
      <span class="mk" />
      <div class="wh">
        {title} <span class="meta">{note}</span>
      </div>
      <span class="tp" />
    </li>
  )
}

const TONES: Readonly<Record<string, string>> = {
  done: 'done',
  running: 'run',
  dead: 'dead',
  discarded: 'idle',
  skipped: 'idle',
  unrecorded: 'idle',
  scheduled: 'idle',
}

function Row({
  reaction,
  since,
  axis,
  name,
  meta,
  children,
}: {
  reaction: Reaction
  since: number | null
  axis: Axis
  name: ComponentChildren
  meta: string
  children?: ComponentChildren
}) {
  const { state, attempts, error, dead_letter, waits_for, due_at } = reaction
  return (
    <li class="n-row">
      <span class="at">{since === null ? '' : `+${span(since)}`}</span>
      <span class="mk">
        <StateGlyph state={state} />
      </span>
      <div class="wh">
        <div class="ln">
          {name}
          <span>{meta}</span>
          <span class="meta">
            {attempts > 1 ? `${attempts} attempts` : ''}
            {due_at !== null && (
              <>
                {' '}
                due <Time at={due_at} />
              </>
            )}
            {dead_letter !== null && (
              <>
                {' '}
                <To to={`dead-letters?letter=${dead_letter}`}>dead letter {dead_letter}</To>
              </>
            )}
          </span>
        </div>
        {error !== null && state !== 'done' && (
          <p class="why">
            <code>{error.code ?? error.name}</code> {error.message}
          </p>
        )}
        {waits_for !== null && state !== 'dead' && <p class="why">{waits_for}</p>}
        {children}
      </div>
      <Tape at={since} axis={axis} tone={TONES[state] ?? 'wait'} />
    </li>
  )
}

function Attempts({ action: { history } }: { action: Action }) {
  if (
    history.length === 0 ||
    (history.length === 1 && history[0]!.outcome === 'success' && history[0]!.request === null)
  )
    return null
  const last = history.at(-1)!
  const answered = history.findLast(({ response }) => response !== null && response !== undefined)
  return (
    <div class="more-in">
      <table class="att">
        <thead>
          <tr>
            <th class="r">#</th>
            <th>at</th>
            <th class="r off-s">took</th>
            <th>answer</th>
          </tr>
        </thead>
        <tbody>
          {history.slice(-10).map((one) => (
            <tr key={`${one.attempt} ${one.at}`}>
              <td class="r">{one.attempt}</td>
              <td class="mono">
                <Time at={one.at} />
              </td>
              <td class="r off-s">{span(one.duration_ms)}</td>
              <td>
                <span class={one.outcome === 'success' ? '' : 't-dead'}>{one.code ?? one.outcome}</span> {one.message}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {last.request && (
        <details>
          <summary class="why">
            <span class="caret" />
            request and answer
          </summary>
          <div class="xchg">
            <figure>
              <figcaption>Request {last.attempt}, as it was recorded</figcaption>
              <pre
                tabIndex={0}
                aria-label="Request"
              >{`${last.request.method ?? ''} ${last.request.url ?? ''}\n${headersOf(last.request.headers)}`}</pre>
            </figure>
            {answered?.response && (
              <figure>
                <figcaption>Answer {answered.attempt}</figcaption>
                <pre
                  tabIndex={0}
                  aria-label="Answer"
                >{`${answered.response.status ?? ''}\n${headersOf(answered.response.headers)}\n${answered.response.body ?? ''}`}</pre>
              </figure>
            )}
          </div>
        </details>
      )}
    </div>
  )
}

function headersOf(headers: Record<string, string> | undefined): string {
  return Object.entries(headers ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
}

interface Axis {
  x(ms: number): number
  readonly ticks: { x: number; label: string }[]
}

const TICKS: readonly (readonly [number, string])[] = [
  [1, '1 ms'],
  [10, '10'],
  [100, '100'],
  [1_000, '1 s'],
  [10_000, '10'],
  [60_000, '1 min'],
  [600_000, '10'],
  [3_600_000, '1 h'],
  [86_400_000, '1 d'],
]

/** Logarithmic from 1 ms to the present: a projection of 1 ms and a timer of hours are both readable. */
function createAxis(spanMs: number): Axis {
  const most = Math.log10(Math.max(spanMs, 1_000))
  const x = (ms: number) => (Math.log10(Math.max(ms, 1)) / most) * 198
  let last = -40
  const ticks = TICKS.flatMap(([ms, label]) => {
    const at = x(ms)
    if (ms > 10 ** most || at - last < 32) return []
    last = at
    return [{ x: at, label }]
  })
  return { x, ticks }
}

function Tape({ at, axis, tone }: { at: number | null; axis: Axis; tone: string }) {
  if (at === null) return <span class="tp" />
  const x = axis.x(at)
  return (
    <span class="tp">
      <svg viewBox="0 0 236 28" aria-hidden="true">
        <path class={`tp-thin s-${tone}`} d={`M0 14H${x.toFixed(1)}`} />
        <circle class={`s-${tone}`} cx={x.toFixed(1)} cy="14" r="3.2" />
      </svg>
    </span>
  )
}

function Side({ receipt: { event }, aggregate }: { receipt: Receipt; aggregate: string | null }) {
  const meta = (event.metadata ?? {}) as Record<string, string | number | null | undefined>
  const facts: [string, ComponentChildren][] = [
    ['position', <b key="p">{number(event.position)}</b>],
    ['id', event.id],
    ['recorded', event.recorded_at],
    ['occurred', event.occurred_at],
    [
      'aggregate',
      aggregate && (
        <To to={`events?aggregate=${encodeURIComponent(aggregate)}`}>
          {aggregate}
          {event.version !== null && `, version ${event.version}`}
        </To>
      ),
    ],
    ['tenant', event.tenant],
    ['user', meta.user_id as string],
    [
      'caused by',
      meta.causation_id && (
        <To to={`events/${encodeURIComponent(String(meta.causation_id))}`}>{String(meta.causation_id)}</To>
      ),
    ],
    [
      'correlation',
      meta.correlation_id && (
        <To to={`events?correlation=${encodeURIComponent(String(meta.correlation_id))}`}>
          {String(meta.correlation_id)}
        </To>
      ),
    ],
    ['trace', meta.traceparent as string],
  ]
  return (
    <aside class="side">
      <Section title="Facts">
        <dl class="facts" data-pad>
          {facts
            .filter(([, value]) => value !== null && value !== undefined && value !== '')
            .map(([name, value]) => [
              <dt key={name}>{name}</dt>,
              <dd class="mono" key={`${name}.`}>
                {value}
              </dd>,
            ])}
        </dl>
      </Section>
      {event.payload !== undefined && (
        <Section title="Payload">
          <div data-pad>
            <Json value={event.payload} label="Payload" />
          </div>
        </Section>
      )}
      {event.changes != null && (
        <Section title="Changes">
          <div data-pad>
            <Json value={event.changes} label="Changes" />
          </div>
        </Section>
      )}
      {event.payload === undefined && (
        <p class="faint" data-pad>
          A viewer sees no payload.
        </p>
      )}
    </aside>
  )
}

/** `webhook to https://erp.example.com: waits`. A destination begins with the type of its action. */
function describeAction({ name, type, destination, state }: Action): string {
  const what = name === type ? type : `${name}, ${type}`
  const where =
    destination === null
      ? ''
      : ` to ${destination.startsWith(`${type} `) ? destination.slice(type.length + 1) : destination}`
  return `${what}${where}: ${WORDS[state]}`
}
