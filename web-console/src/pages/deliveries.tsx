/** Work that waits as rows, and where it goes. First attempts under way have no row, so they are not in the list. */
import type { Delivery, Destination, Page } from '../api.ts'
import { number, plural } from '../format.ts'
import { Act, Command, Empty, Head, Section, StateGlyph, Time, To, Waiting, WORDS } from '../parts.tsx'
import { useRead, useShared } from '../state.tsx'
import { Circuit } from './overview.tsx'

const FILTERS = ['kind', 'state', 'name', 'destination', 'after'] as const

export function Deliveries() {
  const { place, go } = useShared()
  const { query } = place
  const wanted = new URLSearchParams([...query].filter(([name]) => (FILTERS as readonly string[]).includes(name)))
  const rows = useRead<Page<Delivery> & { counts: Record<string, number> }>(`deliveries?${wanted}`, 3_000)
  const places = useRead<{ destinations: Destination[]; orphans: { kind: string; name: string; count: number }[] }>(
    'destinations',
    3_000,
  )
  const counts = rows.value?.counts ?? {}
  const total = Object.values(counts).reduce((sum, one) => sum + one, 0)
  const troubled = places.value?.destinations.filter(({ circuit, paused }) => circuit !== 'closed' || paused) ?? []
  const change = (name: string, value: string | null) => {
    const next = new URLSearchParams(query)
    if (value === null) next.delete(name)
    else next.set(name, value)
    if (name !== 'after') next.delete('after')
    go(`deliveries${next.size > 0 ? `?${next}` : ''}`)
  }
  return (
    <>
      <Head
        title="Deliveries"
        sentence={
          rows.value &&
          (total === 0
            ? 'Nothing waits: first attempts run without a row.'
            : `${plural(total, 'delivery', 'deliveries')} not done: ${Object.entries(counts)
                .filter(([, count]) => count > 0)
                .map(([state, count]) => `${number(count)} ${state}`)
                .join(
                  ', ',
                )}.${troubled.length > 0 ? ` ${plural(troubled.length, 'destination is', 'destinations are')} held back.` : ''}`)
        }
      />
      <Waiting from={places}>
        {({ destinations, orphans }) => (
          <Section title="Destinations" note={String(destinations.length)}>
            {destinations.length === 0 && (
              <Empty>Nothing goes anywhere yet. Observers with webhooks, mail and the like name destinations.</Empty>
            )}
            {destinations.length > 0 && (
              <table class="tbl fold">
                <thead>
                  <tr>
                    <th>destination</th>
                    <th>circuit</th>
                    <th class="r">running</th>
                    <th class="r">waiting</th>
                    <th>limit</th>
                    <th />
                  </tr>
                </thead>
                <tbody>
                  {destinations.map((one) => {
                    const isHeld = one.paused || one.circuit !== 'closed' || one.resting_until !== null
                    return (
                      <tr key={one.destination}>
                        <td class="head1 fill">
                          <To class="id" to={`deliveries?destination=${encodeURIComponent(one.destination)}`}>
                            {one.destination}
                          </To>
                        </td>
                        <td>
                          <Circuit one={one} />
                        </td>
                        <td class="r" data-l="running">
                          {one.running === 0 ? <span class="faint">0</span> : number(one.running)}
                        </td>
                        <td class="r" data-l="waiting">
                          {one.waiting === 0 ? <span class="faint">0</span> : <b>{number(one.waiting)}</b>}
                        </td>
                        <td data-l="limit" class="faint">
                          {one.concurrency === null && one.rate === null
                            ? 'none'
                            : [
                                one.concurrency === null ? '' : `${one.concurrency} at once`,
                                one.rate === null ? '' : `${one.rate}/s`,
                              ]
                                .filter(Boolean)
                                .join(', ')}
                        </td>
                        <td class="r">
                          <Act
                            small
                            label={isHeld ? (one.paused ? 'Resume' : 'Probe now') : 'Pause'}
                            path={isHeld ? 'destinations/resume' : 'destinations/pause'}
                            body={{ destination: one.destination }}
                            onDone={places.reload}
                          />
                        </td>
                      </tr>
                    )
                  })}
                </tbody>
              </table>
            )}
            {orphans.map((one) => (
              <p class="t-wait" key={one.name}>
                No process can do the {one.kind} {one.name}: {plural(one.count, 'delivery waits', 'deliveries wait')}.
              </p>
            ))}
          </Section>
        )}
      </Waiting>
      <Waiting from={rows}>
        {({ items, next }) => (
          <Section
            title="Rows"
            note={query.get('destination') ?? query.get('name') ?? 'oldest first'}
            more={
              <span class="seg" role="group" aria-label="State">
                {[null, 'waiting', 'running', 'retrying', 'scheduled', 'paused'].map((state) => (
                  <button
                    key={state}
                    type="button"
                    aria-pressed={query.get('state') === state}
                    onClick={() => change('state', state)}
                  >
                    {state ?? 'all'}
                  </button>
                ))}
              </span>
            }
          >
            {items.length === 0 ? (
              <Empty>No row passes this filter.</Empty>
            ) : (
              <table class="tbl fold">
                <thead>
                  <tr>
                    <th class="r">id</th>
                    <th>name</th>
                    <th>state</th>
                    <th>due</th>
                    <th class="r">attempts</th>
                    <th>error</th>
                    <th />
                  </tr>
                </thead>
                <tbody>
                  {items.map((one) => (
                    <tr key={one.id}>
                      <td class="r mono faint off-s">{one.id}</td>
                      <td class="head1">
                        {one.event_id === null ? (
                          <span class="id mono">{one.name}</span>
                        ) : (
                          <To class="id" to={`events/${encodeURIComponent(one.event_id)}`}>
                            {one.name}
                          </To>
                        )}{' '}
                        <span class="faint">
                          {one.kind}
                          {one.key === null ? '' : ` ${one.key}`}
                        </span>
                      </td>
                      <td>
                        <span class="lab">
                          <StateGlyph state={one.state} />
                          {WORDS[one.state]}
                        </span>
                      </td>
                      <td class="mono faint">
                        <Time at={one.run_at} />
                      </td>
                      <td class="r" data-l="attempts">
                        {one.attempts}
                      </td>
                      <td class="fill dim">
                        {one.error && `${one.error.code ?? one.error.name} ${one.error.message}`}
                      </td>
                      <td class="r">
                        {(one.state === 'retrying' || one.state === 'scheduled') && one.kind !== 'timer' && (
                          <Act
                            small
                            label="Retry now"
                            path="deliveries/retry"
                            body={{ ids: [one.id] }}
                            onDone={rows.reload}
                          />
                        )}
                      </td>
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
                disabled={!query.has('after')}
                onClick={() => history.back()}
              >
                Before <kbd>p</kbd>
              </button>
              <button
                class="btn"
                type="button"
                data-older
                disabled={next === null}
                onClick={() => change('after', next)}
              >
                After <kbd>n</kbd>
              </button>
              <Command text="npx aftercommit deliveries list" />
            </div>
          </Section>
        )}
      </Waiting>
    </>
  )
}
