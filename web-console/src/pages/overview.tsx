/** How it is, in a sentence; what needs attention, with the act beside it. */
import type { Destination, Subscription } from '../api.ts'
import { number, span } from '../format.ts'
import { Act, Command, Empty, Glyph, Head, Section, To, Waiting } from '../parts.tsx'
import { useRead } from '../state.tsx'

interface Need {
  level: 'dead' | 'wait' | 'idle'
  title: string
  text: string
  command: string | null
  act: { label: string; path: string; body: object } | null
  link: { label: string; to: string } | null
}

interface OverviewData {
  sentence: string
  needs: Need[]
  rates: { every_seconds: number; events: number[] }
  subscriptions: Subscription[]
  destinations: Destination[]
  processes: { process: string; host: string; pid: number; version: string; started_seconds_ago: number }[]
  server: { version: string; database?: string; host?: string }
}

const GLYPH = { dead: 'dead', wait: 'open', idle: 'pause' } as const

export function Overview() {
  const loaded = useRead<OverviewData>('overview', 3_000)
  const { value } = loaded
  const needs = value?.needs ?? []
  return (
    <>
      <Head
        title="Overview"
        sentence={
          value &&
          (needs.length === 0 ? (
            value.sentence
          ) : (
            <>
              <b>{needs[0]!.title}.</b> {value.sentence.slice(needs[0]!.title.length + 1)}
            </>
          ))
        }
      />
      <Waiting from={loaded}>
        {({ rates, subscriptions, destinations, processes }) => (
          <>
            {needs.length > 0 && (
              <Section title="Needs attention" note={`${needs.length}, worst first`}>
                <ol class="needs">
                  {needs.map((need) => (
                    <li class="need" key={need.title}>
                      <Glyph name={GLYPH[need.level]} />
                      <div>
                        <h3>{need.title}</h3>
                        <p>{need.text}</p>
                        {need.command !== null && <Command text={need.command} />}
                      </div>
                      <div class="do">
                        {need.link && (
                          <To class="btn" to={need.link.to}>
                            {need.link.label}
                          </To>
                        )}
                        {need.act && (
                          <Act
                            first
                            label={need.act.label}
                            path={need.act.path}
                            body={need.act.body}
                            onDone={loaded.reload}
                          />
                        )}
                      </div>
                    </li>
                  ))}
                </ol>
              </Section>
            )}
            <Section title="Rate" note="events committed per second, while this page is open">
              <Rate values={rates.events} />
            </Section>
            <div class="cols">
              <Section title="Subscriptions" note={String(subscriptions.length)} more={<To to="subscriptions">all</To>}>
                {subscriptions.length === 0 ? (
                  <Empty command="npx aftercommit start">No process has registered a subscription yet.</Empty>
                ) : (
                  <SubscriptionTable items={subscriptions} />
                )}
              </Section>
              <Section
                title="Destinations"
                note={String(destinations.length)}
                more={<To to="deliveries">deliveries</To>}
              >
                <table class="tbl fold">
                  <thead>
                    <tr>
                      <th>destination</th>
                      <th>circuit</th>
                      <th class="r">waiting</th>
                    </tr>
                  </thead>
                  <tbody>
                    {destinations.map((one) => (
                      <tr key={one.destination}>
                        <td class="head1 fill">
                          <To class="id" to={`deliveries?destination=${encodeURIComponent(one.destination)}`}>
                            {one.destination}
                          </To>
                        </td>
                        <td>
                          <Circuit one={one} />
                        </td>
                        <td class="r" data-l="waiting">
                          {one.waiting === 0 ? <span class="faint">0</span> : <b>{number(one.waiting)}</b>}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
                {destinations.length === 0 && <p class="wait-note">Nothing goes anywhere yet.</p>}
              </Section>
            </div>
            <Section title="Processes" note={String(processes.length)}>
              <table class="tbl fold">
                <thead>
                  <tr>
                    <th>process</th>
                    <th>host</th>
                    <th class="r">pid</th>
                    <th>version</th>
                    <th class="r">up for</th>
                  </tr>
                </thead>
                <tbody>
                  {processes.map((one) => (
                    <tr key={one.process}>
                      <td class="head1 fill mono">{one.process}</td>
                      <td data-l="host">{one.host}</td>
                      <td class="r" data-l="pid">
                        {one.pid}
                      </td>
                      <td data-l="version">{one.version}</td>
                      <td class="r" data-l="up for">
                        {span(one.started_seconds_ago * 1_000)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Section>
          </>
        )}
      </Waiting>
    </>
  )
}

export function Circuit({ one }: { one: Destination }) {
  if (one.paused)
    return (
      <span class="lab t-idle">
        <Glyph name="pause" />
        paused by {one.who}
      </span>
    )
  if (one.circuit === 'open')
    return (
      <span class="lab t-wait">
        <Glyph name="open" />
        open after {one.failures} failures
      </span>
    )
  if (one.circuit === 'half-open')
    return (
      <span class="lab t-wait">
        <Glyph name="probe" />
        being probed
      </span>
    )
  if (one.resting_until !== null)
    return (
      <span class="lab t-idle">
        <Glyph name="timer" />
        left alone, as it asked
      </span>
    )
  return (
    <span class="lab faint">
      <Glyph name="closed" />
      closed
    </span>
  )
}

export function SubscriptionState({ one }: { one: Subscription }) {
  if (one.status === 'paused')
    return (
      <span class="lab">
        <Glyph name="pause" />
        paused
      </span>
    )
  if (one.status === 'stopped')
    return (
      <span class="lab t-dead">
        <Glyph name="dead" />
        stopped
      </span>
    )
  if (one.status === 'failing')
    return (
      <span class="lab t-dead">
        <Glyph name="dead" />
        failing
      </span>
    )
  if (one.parked_keys > 0)
    return (
      <span class="lab t-wait">
        <Glyph name="parked" />
        {one.parked_keys} keys parked, {one.parked} wait
      </span>
    )
  if (one.owner === null)
    return (
      <span class="lab t-wait">
        <Glyph name="wait" />
        no process runs it
      </span>
    )
  return (
    <span class="lab faint">
      <Glyph name="quiet" />
      running
    </span>
  )
}

function SubscriptionTable({ items }: { items: Subscription[] }) {
  return (
    <table class="tbl fold">
      <thead>
        <tr>
          <th>id</th>
          <th>state</th>
          <th class="r">lag</th>
          <th class="r">behind by</th>
        </tr>
      </thead>
      <tbody>
        {items.map((one) => (
          <tr key={one.id}>
            <td class="head1 fill">
              <To class="id" to={`subscriptions?id=${encodeURIComponent(one.id)}`}>
                {one.id}
              </To>
            </td>
            <td>
              <SubscriptionState one={one} />
            </td>
            <td class="r" data-l="lag">
              {one.lag === '0' ? <span class="faint">0</span> : <b>{number(one.lag)}</b>}
            </td>
            <td class="r" data-l="behind">
              {one.lag === '0' ? <span class="faint">–</span> : span(one.lag_seconds * 1_000)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The last ten minutes as a line over its area. Geometry is in attributes: no style is inline. */
function Rate({ values }: { values: number[] }) {
  const width = 600
  const height = 72
  if (values.length < 2) return <p class="wait-note">The line begins with the second look, in a moment.</p>
  const most = Math.max(1, ...values)
  const shown = values.slice(-width)
  const x = (at: number) => width - (shown.length - 1 - at) * (width / Math.max(60, shown.length - 1))
  const y = (value: number) => height - 4 - (value / most) * (height - 14)
  const line = shown.map((value, at) => `${at === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('')
  const last = shown.at(-1)!
  const mean = shown.reduce((sum, value) => sum + value, 0) / shown.length
  return (
    <figure class="chart">
      <figcaption class="cap">
        <span class="faint">
          most {number(most)}, {mean.toFixed(1)} on average
        </span>
        <b>
          {number(last)}
          <small>/s</small>
        </b>
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        height={height}
        role="img"
        aria-label={`Events per second: now ${last}, most ${most}`}
      >
        <path class="area" d={`${line}L${width} ${height}L${x(0).toFixed(1)} ${height}Z`} />
        <path class="c-base" d={`M0 ${height - 0.5}H${width}`} />
        <path class="c-line" d={line} vector-effect="non-scaling-stroke" />
      </svg>
    </figure>
  )
}
