/** What operators did by hand, from the console, the command line and programs. */
import type { Page } from '../api.ts'
import { Empty, Head, Time, Waiting } from '../parts.tsx'
import { useRead, useShared } from '../state.tsx'

interface Act {
  id: string
  at: string
  who: string
  what: string
  target: string | null
  before: unknown
  after: unknown
  reason: string | null
}

export function Audit() {
  const { place, go } = useShared()
  const { query } = place
  const wanted = new URLSearchParams([...query].filter(([name]) => ['who', 'what', 'target', 'before'].includes(name)))
  const loaded = useRead<Page<Act>>(`audit?${wanted}`, 8_000)
  return (
    <Waiting from={loaded}>
      {({ items, next }) => (
        <>
          <Head
            title="Audit"
            sentence="Every change that an operator made by hand, written in the transaction of the change."
          />
          {items.length === 0 ? (
            <Empty>Nothing was changed by hand yet.</Empty>
          ) : (
            <table class="tbl fold">
              <thead>
                <tr>
                  <th>at</th>
                  <th>who</th>
                  <th>what</th>
                  <th>target</th>
                  <th>before</th>
                  <th>after</th>
                  <th>reason</th>
                </tr>
              </thead>
              <tbody>
                {items.map((one) => (
                  <tr key={one.id}>
                    <td class="mono faint">
                      <Time at={one.at} />
                    </td>
                    <td class="mono" data-l="who">
                      {one.who}
                    </td>
                    <td class="head1 mono">{one.what}</td>
                    <td class="mono" data-l="target">
                      {one.target}
                    </td>
                    <td class="mono dim off-s">{brief(one.before)}</td>
                    <td class="mono dim" data-l="after">
                      {brief(one.after)}
                    </td>
                    <td class="fill">{one.reason}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <div class="pager">
            <button class="btn" type="button" data-newer disabled={!query.has('before')} onClick={() => history.back()}>
              Newer <kbd>p</kbd>
            </button>
            <button
              class="btn"
              type="button"
              data-older
              disabled={next === null}
              onClick={() => go(`audit?${new URLSearchParams({ ...Object.fromEntries(wanted), before: next! })}`)}
            >
              Older <kbd>n</kbd>
            </button>
          </div>
        </>
      )}
    </Waiting>
  )
}

function brief(value: unknown): string {
  const text = value === null ? '' : JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}
