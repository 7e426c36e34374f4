/** Every reader of the log: how far it is, who runs it, and what an operator does with it. */
import { useState } from 'preact/hooks'
import { act, type Subscription } from '../api.ts'
import { number, plural, span } from '../format.ts'
import { Act, Ask, Command, Empty, Head, rowProps, Section, Time, To, Waiting } from '../parts.tsx'
import { mayAct, useRead, useShared, whyNot } from '../state.tsx'
import { SubscriptionState } from './overview.tsx'

interface Data {
  head: string
  frontier: string
  items: Subscription[]
}

export function Subscriptions() {
  const { place, go } = useShared()
  const loaded = useRead<Data>('subscriptions', 2_000)
  const picked = place.query.get('id')
  return (
    <Waiting from={loaded}>
      {({ items, head }) => {
        const behind = items.filter(({ lag }) => lag !== '0')
        const chosen = items.find(({ id }) => id === picked)
        const trouble = items.filter(({ status }) => status !== 'active')
        return (
          <>
            <Head
              title="Subscriptions"
              sentence={
                items.length === 0
                  ? undefined
                  : `${plural(items.length, 'reader')} of the log. ${behind.length === 0 ? 'All are at its end.' : `${plural(behind.length, 'one is', 'are')} behind.`}${trouble.length === 0 ? '' : ` ${plural(trouble.length, 'needs', 'need')} a decision.`}`
              }
            />
            {items.length === 0 ? (
              <Empty command="npx aftercommit start">
                No process has registered a subscription yet. `ac.subscribe()` registers one when its process starts.
              </Empty>
            ) : (
              <div class={chosen ? 'panes' : ''}>
                <div>
                  <table class="tbl pick fold">
                    <thead>
                      <tr>
                        <th>id</th>
                        <th>kind</th>
                        <th>state</th>
                        <th class="r">position</th>
                        <th class="r">lag</th>
                        <th class="r">behind by</th>
                        <th class="r">dead letters</th>
                        <th>owner</th>
                      </tr>
                    </thead>
                    <tbody>
                      {items.map((one) => (
                        <tr
                          key={one.id}
                          aria-selected={one.id === picked}
                          {...rowProps(() =>
                            go(one.id === picked ? 'subscriptions' : `subscriptions?id=${encodeURIComponent(one.id)}`, {
                              replace: true,
                            }),
                          )}
                        >
                          <td class="head1 fill">
                            <To class="id" to={`subscriptions?id=${encodeURIComponent(one.id)}`}>
                              {one.id}
                            </To>
                          </td>
                          <td data-l="kind" class="faint">
                            {one.kind}
                          </td>
                          <td>
                            <SubscriptionState one={one} />
                          </td>
                          <td class="r mono off-s">{number(one.position)}</td>
                          <td class="r" data-l="lag">
                            {one.lag === '0' ? <span class="faint">0</span> : <b>{number(one.lag)}</b>}
                          </td>
                          <td class="r" data-l="behind">
                            {one.lag === '0' ? <span class="faint">–</span> : span(one.lag_seconds * 1_000)}
                          </td>
                          <td class="r" data-l="dead">
                            {one.dead_letters === 0 ? (
                              <span class="faint">0</span>
                            ) : (
                              <To to={`dead-letters?owner=${encodeURIComponent(one.id)}`}>
                                {number(one.dead_letters)}
                              </To>
                            )}
                          </td>
                          <td data-l="owner" class={one.owner === null ? 'faint' : ''}>
                            {one.host ?? 'none'}
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
                {chosen && <Details key={chosen.id} one={chosen} head={head} reload={loaded.reload} />}
              </div>
            )}
          </>
        )
      }}
    </Waiting>
  )
}

function Details({ one, head, reload }: { one: Subscription; head: string; reload: () => void }) {
  const shared = useShared()
  const [isSeeking, setSeeking] = useState(false)
  const path = `subscriptions/${encodeURIComponent(one.id)}`
  const isHeld = one.status === 'paused' || one.status === 'stopped'
  return (
    <aside class="pane" aria-label="Selected subscription">
      <Section title={<span class="mono">{one.id}</span>} note={one.kind}>
        <dl class="facts" data-pad>
          <dt>reads</dt>
          <dd class="mono">
            {one.on.join(', ')}
            {one.tenant === null ? '' : ` of tenant ${one.tenant}`}
          </dd>
          <dt>checkpoint</dt>
          <dd class="mono">
            {number(one.position)} of {number(head)}
          </dd>
          <dt>moved</dt>
          <dd>
            <Time at={one.updated_at} />
          </dd>
          {one.reason !== null && (
            <>
              <dt>reason</dt>
              <dd>{one.reason}</dd>
            </>
          )}
          {one.parked > 0 && (
            <>
              <dt>parked</dt>
              <dd>
                {plural(one.parked, 'event')} behind {plural(one.parked_keys, 'key')}
              </dd>
            </>
          )}
        </dl>
      </Section>
      <Section title={isHeld ? 'Resume' : 'Pause'}>
        <div class="stack" data-pad>
          <p class="dim">
            {isHeld ? 'It goes on from its checkpoint.' : 'No handler begins, in any process. The checkpoint stays.'}
          </p>
          <div class="inline">
            <Act
              first={isHeld}
              label={isHeld ? 'Resume' : 'Pause'}
              path={`${path}/${isHeld ? 'resume' : 'pause'}`}
              onDone={reload}
            />
          </div>
          <Command text={`npx aftercommit subscriptions ${isHeld ? 'resume' : 'pause'} ${one.id}`} />
        </div>
      </Section>
      <Section title="Seek">
        <div class="stack" data-pad>
          <p class="dim">Moves the checkpoint: back handles events again, forward skips them. Dead letters stay.</p>
          {isSeeking ? (
            <Seek
              one={one}
              path={path}
              done={() => {
                setSeeking(false)
                reload()
              }}
            />
          ) : (
            <div class="inline">
              <button
                class="btn harm"
                type="button"
                disabled={!mayAct(shared)}
                title={whyNot(shared)}
                onClick={() => setSeeking(true)}
              >
                Seek…
              </button>
            </div>
          )}
          <Command text={`npx aftercommit subscriptions seek ${one.id} --to head`} />
        </div>
      </Section>
    </aside>
  )
}

interface Preview {
  from: string
  to: string
  events: number
  direction: 'back' | 'forward' | 'nowhere'
}

function Seek({ one, path, done }: { one: Subscription; path: string; done: () => void }) {
  const [to, setTo] = useState('head')
  const [preview, setPreview] = useState<Preview>()
  const [error, setError] = useState<string>()
  const look = async (event: Event) => {
    event.preventDefault()
    setError(undefined)
    try {
      setPreview(await act<Preview>(`${path}/seek`, { to, preview: true }))
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure))
    }
  }
  if (preview !== undefined) {
    const what =
      preview.direction === 'back'
        ? `${plural(preview.events, 'event')} are handled again.`
        : preview.direction === 'forward'
          ? `${plural(preview.events, 'event')} are never handled by ${one.id}.`
          : 'The checkpoint is there already.'
    return (
      <Ask
        title={`Move ${one.id} from ${number(preview.from)} to ${number(preview.to)}?`}
        points={[what, 'Dead letters and parked events stay as they are.']}
        confirm={`Move, ${plural(preview.events, 'event')}`}
        harm
        count={preview.events}
        onGo={async (reason) => {
          await act(`${path}/seek`, { to, reason })
          done()
        }}
        onCancel={done}
      />
    )
  }
  return (
    <form class="stack" onSubmit={look}>
      <label class="field">
        To: start, head, a position, or a time
        <input value={to} onInput={(event) => setTo(event.currentTarget.value)} />
      </label>
      <div class="inline">
        <button class="btn" type="submit">
          Count what it means
        </button>
        <button class="btn bare" type="button" onClick={done}>
          Cancel
        </button>
      </div>
      {error !== undefined && (
        <p class="t-dead" role="alert">
          {error}
        </p>
      )}
    </form>
  )
}
