/** The log, newest first, with the fate of each event. New ones arrive while nothing is open; held ones are counted. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type EventLine, openStream, type Page, type Receipt } from '../api.ts'
import { number } from '../format.ts'
import { Empty, Glyph, Head, Json, rowProps, Section, StateGlyph, Strip, Time, To, Waiting, WORDS } from '../parts.tsx'
import { useRead, useShared } from '../state.tsx'

const FILTERS = ['on', 'aggregate', 'tenant', 'correlation', 'since', 'before'] as const

export function Events() {
  const { place, go } = useShared()
  const { query } = place
  const [isPaused, setPaused] = useState(false)
  const wanted = new URLSearchParams([...query].filter(([name]) => (FILTERS as readonly string[]).includes(name)))
  const loaded = useRead<Page<EventLine>>(`events?${wanted}`, query.has('before') || isPaused ? 0 : 5_000)
  const picked = query.get('event')
  const isLive = wanted.size === 0 && !isPaused && picked === null
  const { rows, held, release } = useTail(loaded.value?.items, isLive)
  const change = (name: string, value: string | null) => {
    const next = new URLSearchParams(query)
    if (value === null) next.delete(name)
    else next.set(name, value)
    if (name !== 'before' && name !== 'event') next.delete('before')
    go(`events${next.size > 0 ? `?${next}` : ''}`, { replace: name === 'event' })
  }
  return (
    <>
      <Head title="Events">
        <button class="btn" type="button" data-pause aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          <Glyph name={isPaused ? 'run' : 'pause'} /> {isPaused ? 'Go on' : 'Pause'} <kbd>space</kbd>
        </button>
      </Head>
      <Filter query={query} change={change} />
      <div class={picked === null ? '' : 'panes'}>
        <Waiting from={loaded}>
          {({ next }) => (
            <div>
              <div class="sec">
                {held > 0 && (
                  <button
                    class="held"
                    type="button"
                    onClick={() => {
                      setPaused(false)
                      release()
                      if (picked) change('event', null)
                    }}
                  >
                    {number(held)} newer events are held. Show them
                  </button>
                )}
                <p class="sr" aria-live="polite">
                  {held > 0 ? `${held} newer events` : ''}
                </p>
                {rows.length === 0 ? (
                  <Empty
                    command={
                      wanted.size === 0
                        ? 'npx aftercommit events emit order.placed --aggregate order/42 --payload \'{"total": 90}\''
                        : (undefined as never)
                    }
                  >
                    {wanted.size === 0 ? 'No event was committed yet. Emit one:' : 'No event passes this filter.'}
                  </Empty>
                ) : (
                  <table class="tbl pick fold">
                    <thead>
                      <tr>
                        <th class="r">position</th>
                        <th>recorded</th>
                        <th>type</th>
                        <th>aggregate</th>
                        <th class="r">version</th>
                        <th>payload</th>
                        <th>what followed</th>
                      </tr>
                    </thead>
                    <tbody>
                      {rows.map((event) => (
                        <tr
                          key={event.position}
                          aria-selected={picked === event.id}
                          class={event.strip === undefined ? 'fresh' : undefined}
                          {...rowProps(() => change('event', picked === event.id ? null : event.id))}
                        >
                          <td class="r mono faint off-s">{number(event.position)}</td>
                          <td class="mono faint">
                            <Time at={event.recorded_at} />
                          </td>
                          <td class="head1">
                            <To class="id" to={`events/${encodeURIComponent(event.id)}`}>
                              {event.type}
                            </To>
                          </td>
                          <td class="mono">
                            {event.aggregate_type === null ? (
                              <span class="faint">–</span>
                            ) : (
                              `${event.aggregate_type}/${event.aggregate_id}`
                            )}
                          </td>
                          <td class="r faint off-s">{event.version ?? ''}</td>
                          <td class="fill dim">{event.summary}</td>
                          <td>{event.strip ? <Strip marks={event.strip} /> : <span class="faint">…</span>}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                )}
                <div class="pager">
                  <button
                    class="btn"
                    type="button"
                    data-newer
                    disabled={!query.has('before')}
                    onClick={() => history.back()}
                  >
                    Newer <kbd>p</kbd>
                  </button>
                  <button
                    class="btn"
                    type="button"
                    data-older
                    disabled={next === null}
                    onClick={() => change('before', next)}
                  >
                    Older <kbd>n</kbd>
                  </button>
                  {rows.length > 0 && (
                    <span>
                      {number(rows.at(-1)!.position)} to {number(rows[0]!.position)}
                    </span>
                  )}
                </div>
              </div>
            </div>
          )}
        </Waiting>
        {picked !== null && <Preview id={picked} close={() => change('event', null)} />}
      </div>
    </>
  )
}

/** Rows of the last answer with those that arrived since. While a row is open or the tail pauses, new ones are counted. */
function useTail(items: EventLine[] | undefined, isLive: boolean) {
  const [fresh, setFresh] = useState<EventLine[]>([])
  const [held, setHeld] = useState(0)
  const live = useRef(isLive)
  live.current = isLive
  useEffect(() => {
    if (isLive) setHeld(0)
  }, [isLive])
  useEffect(
    () => setFresh((before) => before.filter(({ position }) => !items?.some((one) => one.position === position))),
    [items],
  )
  useEffect(
    () =>
      openStream(true, {
        status() {},
        events({ items: arrived, more }) {
          if (live.current) setFresh((before) => [...arrived, ...before].slice(0, 100))
          else setHeld((count) => count + arrived.length + more)
        },
        down() {},
        lost() {},
      }),
    [],
  )
  const known = new Set(items?.map(({ position }) => position))
  const rows = isLive
    ? [...fresh.filter(({ position }) => !known.has(position)), ...(items ?? [])].slice(0, 60)
    : (items ?? [])
  return { rows, held, release: () => setHeld(0) }
}

function Filter({ query, change }: { query: URLSearchParams; change: (name: string, value: string | null) => void }) {
  const [text, setText] = useState('')
  const submit = (event: Event) => {
    event.preventDefault()
    const [, name, value] = /^(type|on|aggregate|tenant|correlation|since):(.+)$/.exec(text.trim()) ?? []
    if (value !== undefined) change(name === 'type' ? 'on' : name!, value)
    else if (/^[\w.-]+\/.+$/.test(text.trim())) change('aggregate', text.trim())
    else if (text.trim() !== '') change('on', text.trim())
    setText('')
  }
  return (
    <form class="filter" role="search" aria-label="Filter events" onSubmit={submit}>
      {FILTERS.filter((name) => name !== 'before' && query.has(name)).map((name) => (
        <span class="tok" key={name}>
          <span>{name === 'on' ? 'type' : name}</span>
          <b>{query.get(name)}</b>
          <button type="button" aria-label={`Remove ${name} ${query.get(name)}`} onClick={() => change(name, null)}>
            ×
          </button>
        </span>
      ))}
      <input
        type="text"
        value={text}
        aria-label="Add a filter"
        placeholder="order.*   order/1042   tenant:nord   correlation:…   since:15m"
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </form>
  )
}

function Preview({ id, close }: { id: string; close: () => void }) {
  const loaded = useRead<Receipt>(`events/${encodeURIComponent(id)}`, 5_000)
  return (
    <aside class="pane" aria-label="Selected event">
      <Waiting from={loaded}>
        {({ event, sentence, open, subscriptions, observers, work }) => {
          const all = [
            ...subscriptions.map((one) => ({ name: one.id, state: one.state })),
            ...observers.flatMap((one) =>
              one.actions.map((action) => ({ name: `${one.observer}/${action.name}`, state: action.state })),
            ),
            ...work.map((one) => ({ name: `${one.kind} ${one.name}`, state: one.state })),
          ]
          const done = all.filter(({ state }) => state === 'done').length
          return (
            <>
              <Section
                title={<span class="mono">{event.type}</span>}
                note={event.aggregate_type === null ? '' : `${event.aggregate_type}/${event.aggregate_id}`}
                more={
                  <>
                    <To to={`events/${encodeURIComponent(id)}`}>Receipt</To>{' '}
                    <button class="btn s bare" type="button" onClick={close}>
                      Close
                    </button>
                  </>
                }
              >
                <p data-pad>{sentence}</p>
                <ul class="stack" data-pad>
                  {all
                    .filter(({ state }) => state !== 'done')
                    .slice(0, 12)
                    .map(({ name, state }) => (
                      <li class="lab" key={name}>
                        <StateGlyph state={state} />
                        <span>
                          <b>{name}</b> {WORDS[state]}
                        </span>
                      </li>
                    ))}
                  {done > 0 && (
                    <li class="lab faint">
                      <Glyph name="done" />
                      <span>{done} done</span>
                    </li>
                  )}
                </ul>
                {open[0] && (
                  <p class="why" data-pad>
                    {open[0].why}
                  </p>
                )}
              </Section>
              {event.payload !== undefined && (
                <Section title="Payload">
                  <div data-pad>
                    <Json value={event.payload} label="Payload" />
                  </div>
                </Section>
              )}
            </>
          )
        }}
      </Waiting>
    </aside>
  )
}
