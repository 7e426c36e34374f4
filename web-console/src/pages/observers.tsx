/** Rules in force, wherever they come from, and what they did in the last 24 hours. */
import { number, plural } from '../format.ts'
import { Empty, Glyph, Head, Time, To, Waiting } from '../parts.tsx'
import { useRead } from '../state.tsx'

interface Observer {
  name: string
  source: 'file' | 'program' | 'elsewhere'
  is_in_force: boolean
  enabled: boolean
  on: string[]
  entity: string | null
  condition: string | null
  actions: { name: string; type: string; pause: { who: string; reason: string | null } | null; dead: number }[]
  runs: { success: number; partial: number; failure: number }
  last_run_at: string | null
}

export function Observers() {
  const loaded = useRead<{ items: Observer[] }>('observers', 5_000)
  return (
    <Waiting from={loaded}>
      {({ items }) => (
        <>
          <Head
            title="Observers"
            sentence={
              items.length === 0
                ? undefined
                : `${plural(items.length, 'rule')} known, ${items.filter(({ is_in_force }) => is_in_force).length} in force. Counts are of the last 24 hours.`
            }
          />
          {items.length === 0 ? (
            <Empty command="npx aftercommit observers validate">
              No rule is in force. Write observers in aftercommit.toml, or add them with `ac.observers.add()`.
            </Empty>
          ) : (
            <table class="tbl fold">
              <thead>
                <tr>
                  <th>observer</th>
                  <th>on</th>
                  <th>condition</th>
                  <th>actions</th>
                  <th class="r">acted</th>
                  <th class="r">failed</th>
                  <th>last</th>
                  <th>source</th>
                </tr>
              </thead>
              <tbody>
                {items.map((one) => {
                  const dead = one.actions.reduce((sum, action) => sum + action.dead, 0)
                  return (
                    <tr key={one.name}>
                      <td class="head1">
                        <span class="id mono">{one.name}</span>
                        {!one.enabled && (
                          <span class="lab t-idle">
                            <Glyph name="off" />
                            off
                          </span>
                        )}
                      </td>
                      <td class="mono" data-l="on">
                        {one.on.join(', ')}
                        {one.entity === null ? '' : ` of ${one.entity}`}
                      </td>
                      <td class="fill mono dim">{one.condition}</td>
                      <td data-l="actions">
                        {one.actions.map(({ type }) => type).join(', ')}
                        {one.actions.some(({ pause }) => pause !== null) && (
                          <span class="lab t-wait">
                            <Glyph name="pause" />
                            paused
                          </span>
                        )}
                      </td>
                      <td class="r" data-l="acted">
                        {number(one.runs.success + one.runs.partial)}
                      </td>
                      <td class="r" data-l="failed">
                        {one.runs.failure === 0 ? (
                          <span class="faint">0</span>
                        ) : (
                          <b class="t-dead">{number(one.runs.failure)}</b>
                        )}
                        {dead > 0 && (
                          <>
                            {' '}
                            <To to={`dead-letters?kind=action`}>{plural(dead, 'dead letter')}</To>
                          </>
                        )}
                      </td>
                      <td class="mono faint">
                        <Time at={one.last_run_at} />
                      </td>
                      <td data-l="source" class="faint">
                        {one.source === 'elsewhere' ? 'another process' : one.source}
                      </td>
                    </tr>
                  )
                })}
              </tbody>
            </table>
          )}
        </>
      )}
    </Waiting>
  )
}
