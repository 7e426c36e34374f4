/** What ran out of attempts: by cause first, then one by one; redriven or given up with the count named first. */
import { useState } from 'preact/hooks'
import { act, type Cause, type DeadLetter, type Page } from '../api.ts'
import { number, plural } from '../format.ts'
import { Ask, Command, Empty, Fault, Glyph, Head, Json, rowProps, Section, Time, To, Waiting } from '../parts.tsx'
import { mayAct, useRead, useShared, whyNot } from '../state.tsx'

const FILTERS = ['status', 'kind', 'owner', 'key', 'error', 'before'] as const

export function DeadLetters() {
  const { place, go } = useShared()
  const { query } = place
  const wanted = new URLSearchParams([...query].filter(([name]) => (FILTERS as readonly string[]).includes(name)))
  if (!wanted.has('status')) wanted.set('status', 'dead')
  const causes = useRead<{ items: Cause[] }>('dead-letters/causes', 4_000)
  const letters = useRead<Page<DeadLetter> & { count: number }>(`dead-letters?${wanted}`, 4_000)
  const picked = query.get('letter')
  // Kept here: the list that was acted on may be empty afterwards.
  const [told, setTold] = useState<string>()
  const reload = () => {
    causes.reload()
    letters.reload()
  }
  const change = (changes: Record<string, string | null>) => {
    const next = new URLSearchParams(query)
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) next.delete(name)
      else next.set(name, value)
    }
    go(`dead-letters${next.size > 0 ? `?${next}` : ''}`, { replace: 'letter' in changes })
  }
  const total = causes.value?.items.reduce((sum, one) => sum + one.count, 0) ?? 0
  return (
    <>
      <Head
        title="Dead letters"
        sentence={
          causes.value &&
          (total === 0
            ? 'None waits for a decision.'
            : `${total >= 10_000 ? 'More than 10,000' : number(total)} wait for a decision, of ${plural(causes.value.items.length, 'cause')}. Mend the cause, then redrive.`)
        }
      />
      {causes.value && causes.value.items.length > 0 && (
        <Section title="Causes" note="of the newest 10,000">
          {causes.value.items.slice(0, 8).map((one) => (
            <To
              key={`${one.kind} ${one.owner} ${one.code} ${one.sample}`}
              class="cause"
              current={query.get('owner') === one.owner}
              to={`dead-letters?kind=${one.kind}&owner=${encodeURIComponent(one.owner)}`}
            >
              <Glyph name="dead" />
              <div>
                <h3>
                  {one.owner}: {one.code}
                </h3>
                <p>{one.message.slice(0, 200)}</p>
                {one.parked_keys > 0 && <p>{plural(one.parked_keys, 'key')} parked</p>}
              </div>
              <span class="c">{number(one.count)}</span>
              <span class="faint when">
                newest <Time at={one.newest} />
              </span>
              <span class="faint hist">
                oldest <Time at={one.oldest} />
              </span>
            </To>
          ))}
        </Section>
      )}
      <div class={picked === null ? '' : 'panes'}>
        <Waiting from={letters}>
          {({ items, count, next }) => (
            <div>
              <Section
                title="Letters"
                note={`${count > 1_000 ? '1,000+' : count}${query.has('owner') ? ` of ${query.get('owner')}` : ''}`}
                more={
                  <span class="seg" role="group" aria-label="Status">
                    {['dead', 'redriving', 'resolved', 'discarded'].map((status) => (
                      <button
                        key={status}
                        type="button"
                        aria-pressed={wanted.get('status') === status}
                        onClick={() => change({ status, before: null })}
                      >
                        {status}
                      </button>
                    ))}
                  </span>
                }
              >
                {told !== undefined && <p role="status">{told}</p>}
                {wanted.get('status') === 'dead' && items.length > 0 && (
                  <Bulk query={wanted} items={items} count={count} reload={reload} onTold={setTold} />
                )}
                {items.length === 0 ? (
                  <Empty>
                    {query.has('owner')
                      ? 'No dead letter passes this filter.'
                      : 'Every event was handled within its attempts.'}
                  </Empty>
                ) : (
                  <table class="tbl pick fold">
                    <thead>
                      <tr>
                        <th class="r">id</th>
                        <th>owner</th>
                        <th>event</th>
                        <th>key</th>
                        <th class="r">attempts</th>
                        <th>died</th>
                        <th>error</th>
                        <th class="r">waiting</th>
                      </tr>
                    </thead>
                    <tbody>
                      {items.map((one) => (
                        <tr
                          key={one.id}
                          aria-selected={picked === one.id}
                          {...rowProps(() => change({ letter: picked === one.id ? null : one.id }))}
                        >
                          <td class="r mono faint off-s">{one.id}</td>
                          <td class="head1">
                            <span class="id mono">{one.owner}</span>
                          </td>
                          <td>
                            <To to={`events/${encodeURIComponent(one.event_id)}`}>{one.event_type}</To>
                          </td>
                          <td class="mono" data-l="key">
                            {one.key}
                          </td>
                          <td class="r" data-l="attempts">
                            {one.attempts}
                          </td>
                          <td class="mono faint">
                            <Time at={one.last_attempt_at} />
                          </td>
                          <td class="fill">
                            {one.error.code ?? one.error.name} <span class="dim">{one.error.message}</span>
                          </td>
                          <td class="r" data-l="waiting">
                            {one.waiting === 0 ? <span class="faint">0</span> : <b>{one.waiting}</b>}
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
                    onClick={() => change({ before: next })}
                  >
                    Older <kbd>n</kbd>
                  </button>
                </div>
              </Section>
            </div>
          )}
        </Waiting>
        {picked !== null && <Letter key={picked} id={picked} close={() => change({ letter: null })} reload={reload} />}
      </div>
    </>
  )
}

type Question = { verb: 'redrive' | 'discard'; body: object; count: number; points: string[] }

function Bulk({
  query,
  items,
  count,
  reload,
  onTold,
}: {
  query: URLSearchParams
  items: DeadLetter[]
  count: number
  reload: () => void
  onTold: (text: string) => void
}) {
  const shared = useShared()
  const [question, setQuestion] = useState<Question>()
  const filter = Object.fromEntries([...query].filter(([name]) => name !== 'before' && name !== 'status'))
  const isNarrow = Object.keys(filter).length > 0
  const waiting = items.reduce((sum, one) => sum + one.waiting, 0)
  const ask = (verb: Question['verb']) =>
    setQuestion({
      verb,
      body: { filter },
      count,
      points: [
        `${count > 1_000 ? 'More than 1,000' : plural(count, 'dead letter')} of ${query.get('owner')}.`,
        verb === 'redrive'
          ? 'Each runs again from its first attempt, in the order of its key. Receivers may have got some of it before.'
          : 'They are never handled. Events that wait behind them go on.',
        ...(waiting > 0 ? [`${plural(waiting, 'event')} wait behind those on this page.`] : []),
      ],
    })
  const first = items[0]!
  if (question) {
    return (
      <Ask
        title={
          question.verb === 'redrive'
            ? `Redrive ${question.count > 1_000 ? 'all' : plural(question.count, 'dead letter')}?`
            : `Give up ${plural(question.count, 'dead letter')}?`
        }
        points={question.points}
        confirm={`${question.verb === 'redrive' ? 'Redrive' : 'Discard'} ${question.count > 1_000 ? 'all' : question.count}`}
        harm={question.verb === 'discard'}
        count={question.count}
        onGo={async (reason) => {
          const { count: marked } = await act<{ count: number }>(`dead-letters/${question.verb}`, {
            ...question.body,
            reason,
          })
          onTold(`${plural(marked, 'dead letter')} marked.`)
          setQuestion(undefined)
          reload()
        }}
        onCancel={() => setQuestion(undefined)}
      />
    )
  }
  return (
    <div class="pager">
      {isNarrow ? (
        <>
          <button
            class="btn"
            type="button"
            disabled={!mayAct(shared)}
            title={whyNot(shared)}
            onClick={() =>
              setQuestion({
                verb: 'redrive',
                body: { ids: [first.id] },
                count: 1,
                points: [`${first.owner}: ${first.error.message}`, 'If it passes, redrive the rest.'],
              })
            }
          >
            Redrive one first
          </button>
          <button
            class="btn first"
            type="button"
            disabled={!mayAct(shared)}
            title={whyNot(shared)}
            onClick={() => ask('redrive')}
          >
            Redrive {count > 1_000 ? 'all' : count}…
          </button>
          <button
            class="btn harm"
            type="button"
            disabled={!mayAct(shared)}
            title={whyNot(shared)}
            onClick={() => ask('discard')}
          >
            Discard {count > 1_000 ? 'all' : count}…
          </button>
          <Command text={`npx aftercommit dlq redrive --all-matching --owner ${query.get('owner') ?? ''}`} />
        </>
      ) : (
        <span>Choose a cause to redrive or discard its dead letters together.</span>
      )}
    </div>
  )
}

function Letter({ id, close, reload }: { id: string; close: () => void; reload: () => void }) {
  const shared = useShared()
  const loaded = useRead<DeadLetter>(`dead-letters/${id}`, 4_000)
  const [verb, setVerb] = useState<'redrive' | 'discard'>()
  if (loaded.error && loaded.value === undefined)
    return (
      <aside class="pane">
        <Fault error={loaded.error} />
      </aside>
    )
  return (
    <aside class="pane" aria-label="Selected dead letter">
      <Waiting from={loaded}>
        {(letter) => (
          <>
            <Section
              title={`Dead letter ${letter.id}`}
              note={letter.status}
              more={
                <button class="btn s bare" type="button" onClick={close}>
                  Close
                </button>
              }
            >
              <dl class="facts" data-pad>
                <dt>owner</dt>
                <dd class="mono">{letter.owner}</dd>
                <dt>kind</dt>
                <dd>{letter.kind}</dd>
                <dt>event</dt>
                <dd>
                  <To to={`events/${encodeURIComponent(letter.event_id)}`}>{letter.event_type}</To>
                </dd>
                <dt>key</dt>
                <dd class="mono">{letter.key}</dd>
                <dt>attempts</dt>
                <dd>
                  {letter.attempts}, <Time at={letter.first_attempt_at} /> to <Time at={letter.last_attempt_at} />
                </dd>
                {letter.waiting > 0 && (
                  <>
                    <dt>waiting</dt>
                    <dd>{plural(letter.waiting, 'event')} behind it</dd>
                  </>
                )}
                {letter.who !== null && (
                  <>
                    <dt>by</dt>
                    <dd>
                      {letter.who}
                      {letter.reason === null ? '' : `: ${letter.reason}`}
                    </dd>
                  </>
                )}
              </dl>
              <p class="why" data-pad>
                <code>{letter.error.code ?? letter.error.name}</code> {letter.error.message}
              </p>
            </Section>
            {letter.status === 'dead' &&
              (verb === undefined ? (
                <div class="pager">
                  <button
                    class="btn first"
                    type="button"
                    disabled={!mayAct(shared)}
                    title={whyNot(shared)}
                    onClick={() => setVerb('redrive')}
                  >
                    Redrive…
                  </button>
                  <button
                    class="btn harm"
                    type="button"
                    disabled={!mayAct(shared)}
                    title={whyNot(shared)}
                    onClick={() => setVerb('discard')}
                  >
                    Discard…
                  </button>
                </div>
              ) : (
                <Ask
                  title={verb === 'redrive' ? `Redrive dead letter ${id}?` : `Give up dead letter ${id}?`}
                  points={[
                    verb === 'redrive'
                      ? 'It runs again from its first attempt, then what waits behind it.'
                      : 'It is never handled. What waits behind it goes on.',
                  ]}
                  confirm={verb === 'redrive' ? 'Redrive 1' : 'Discard 1'}
                  harm={verb === 'discard'}
                  count={1}
                  onGo={async (reason) => {
                    await act(`dead-letters/${verb}`, { ids: [id], reason })
                    setVerb(undefined)
                    loaded.reload()
                    reload()
                  }}
                  onCancel={() => setVerb(undefined)}
                />
              ))}
            <Command text={`npx aftercommit dlq redrive ${id}`} />
            {letter.event !== undefined && (
              <Section title="Event">
                <div data-pad>
                  <Json value={letter.event} label="Event" />
                </div>
              </Section>
            )}
          </>
        )}
      </Waiting>
    </aside>
  )
}
