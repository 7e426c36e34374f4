/** Workflow instances by their last event, and one of them as a timeline of its events, effects and timers. */
import { useState } from 'preact/hooks'
import type { DeadLetter, Delivery } from '../api.ts'
import { number, plural, span } from '../format.ts'
import { Act, Empty, Glyph, Head, Json, Section, StateGlyph, Time, To, Waiting, WORDS } from '../parts.tsx'
import { useRead, useShared } from '../state.tsx'

interface Instance {
  type: string
  id: string
  version: number
  paused: boolean
  unique_key: string | null
  created_at: string
  last_event_at: string
  completed_at: string | null
}

export function Workflows() {
  const { place, go } = useShared()
  const { query } = place
  const wanted = new URLSearchParams([...query].filter(([name]) => name === 'type' || name === 'after'))
  const loaded = useRead<{ items: Instance[]; next?: string }>(`workflows?${wanted}`, 4_000)
  const timers = useRead<{ items: { type: string; id: string; key: string | null; due_at?: string; at?: string }[] }>(
    'timers?limit=10',
    8_000,
  )
  return (
    <Waiting from={loaded}>
      {({ items, next }) => (
        <>
          <Head
            title="Workflows"
            sentence={
              items.length === 0
                ? undefined
                : `Instances by their last event, newest first.${timers.value ? ` ${timers.value.items.length === 10 ? 'At least 10 timers are' : `${plural(timers.value.items.length, 'timer is', 'timers are')}`} set.` : ''}`
            }
          />
          {items.length === 0 ? (
            <Empty>No workflow has begun. `ac.workflows.register()` and `execute()` begin one.</Empty>
          ) : (
            <table class="tbl pick fold">
              <thead>
                <tr>
                  <th>instance</th>
                  <th>state</th>
                  <th class="r">events</th>
                  <th>began</th>
                  <th>last event</th>
                  <th>key</th>
                </tr>
              </thead>
              <tbody>
                {items.map((one) => (
                  <tr
                    key={`${one.type}/${one.id}`}
                    tabIndex={0}
                    onKeyDown={(event) =>
                      event.key === 'Enter' &&
                      go(`workflows/${encodeURIComponent(one.type)}/${encodeURIComponent(one.id)}`)
                    }
                  >
                    <td class="head1 fill">
                      <To class="id" to={`workflows/${encodeURIComponent(one.type)}/${encodeURIComponent(one.id)}`}>
                        {one.type}/{one.id}
                      </To>
                    </td>
                    <td>
                      {one.completed_at !== null ? (
                        <span class="lab faint">
                          <Glyph name="done" />
                          completed
                        </span>
                      ) : one.paused ? (
                        <span class="lab">
                          <Glyph name="pause" />
                          paused
                        </span>
                      ) : (
                        <span class="lab">
                          <Glyph name="run" />
                          open
                        </span>
                      )}
                    </td>
                    <td class="r" data-l="events">
                      {number(one.version)}
                    </td>
                    <td class="mono faint" data-l="began">
                      <Time at={one.created_at} />
                    </td>
                    <td class="mono faint" data-l="last">
                      <Time at={one.last_event_at} />
                    </td>
                    <td class="mono faint" data-l="key">
                      {one.unique_key ?? ''}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <div class="pager">
            <button class="btn" type="button" data-newer disabled={!query.has('after')} onClick={() => history.back()}>
              Newer <kbd>p</kbd>
            </button>
            <button
              class="btn"
              type="button"
              data-older
              disabled={next === undefined}
              onClick={() => go(`workflows?${new URLSearchParams({ ...Object.fromEntries(wanted), after: next! })}`)}
            >
              Older <kbd>n</kbd>
            </button>
          </div>
        </>
      )}
    </Waiting>
  )
}

interface InstanceData {
  type: string
  id: string
  events: { id: string; type: string; version: number; position: string; recorded_at: string; payload?: unknown }[]
  timers: Record<string, string | null>[]
  effects: Delivery[]
  letters: DeadLetter[]
}

export function Workflow({ type, id }: { type: string; id: string }) {
  const loaded = useRead<InstanceData>(`workflows/${encodeURIComponent(type)}/${encodeURIComponent(id)}`, 3_000)
  const [picked, setPicked] = useState<string>()
  return (
    <Waiting from={loaded}>
      {({ events, timers, effects, letters }) => {
        const oldest = events.at(-1)
        const start = oldest === undefined ? 0 : new Date(oldest.recorded_at).getTime()
        const dead = letters.filter(({ status }) => status === 'dead')
        const waits = [
          effects.length > 0 ? plural(effects.length, 'effect') : '',
          timers.length > 0 ? plural(timers.length, 'timer') : '',
          dead.length > 0 ? plural(dead.length, 'dead letter') : '',
        ].filter(Boolean)
        return (
          <>
            <Head
              crumb={
                <>
                  <To to="workflows">Workflows</To> / <To to={`workflows?type=${encodeURIComponent(type)}`}>{type}</To>
                </>
              }
              title={
                <span class="type">
                  {type}/{id}
                </span>
              }
              sentence={`${plural(events.length, 'event')}. ${waits.length === 0 ? 'Nothing is open: it waits for its next input, or it is complete.' : `Open: ${waits.join(', ')}.`}`}
            >
              <Act
                label="Pause"
                path={`workflows/${encodeURIComponent(type)}/${encodeURIComponent(id)}/pause`}
                onDone={loaded.reload}
              />
              <Act
                label="Resume"
                path={`workflows/${encodeURIComponent(type)}/${encodeURIComponent(id)}/resume`}
                onDone={loaded.reload}
              />
            </Head>
            <ol class="thread" aria-label="History">
              {[...events].reverse().map((event, at) => (
                <li
                  class={`n-row${at === events.length - 1 && effects.length + timers.length + letters.length === 0 ? ' last' : ''}`}
                  key={event.id}
                >
                  <span class="at">
                    {at === 0 ? (
                      <Time at={event.recorded_at} />
                    ) : (
                      `+${span(new Date(event.recorded_at).getTime() - start)}`
                    )}
                  </span>
                  <span class="mk">
                    <Glyph name="done" />
                  </span>
                  <div class="wh">
                    <div class="ln">
                      <button
                        class="btn s bare name"
                        type="button"
                        aria-expanded={picked === event.id}
                        onClick={() => setPicked(picked === event.id ? undefined : event.id)}
                      >
                        {event.type}
                      </button>
                      <span class="meta">version {event.version}</span>
                      <To class="meta" to={`events/${encodeURIComponent(event.id)}`}>
                        receipt
                      </To>
                    </div>
                    {picked === event.id && event.payload !== undefined && (
                      <Json value={event.payload} label="Payload" />
                    )}
                  </div>
                  <span class="tp" />
                </li>
              ))}
              {effects.map((one) => (
                <li class="n-row" key={one.id}>
                  <span class="at">{one.attempts > 0 ? `${one.attempts} attempts` : ''}</span>
                  <span class="mk">
                    <StateGlyph state={one.state} />
                  </span>
                  <div class="wh">
                    <div class="ln">
                      <span class="name">{one.name}</span>
                      <span>effect {WORDS[one.state]}</span>
                      <span class="meta">
                        due <Time at={one.run_at} />
                      </span>
                    </div>
                    {one.error && (
                      <p class="why">
                        <code>{one.error.code ?? one.error.name}</code> {one.error.message}
                      </p>
                    )}
                  </div>
                  <span class="tp" />
                </li>
              ))}
              {timers.map((one, at) => {
                const due = one.due_at ?? one.run_at ?? one.at ?? null
                return (
                  <li class="n-row" key={`timer ${one.key ?? at}`}>
                    <span class="at" />
                    <span class="mk">
                      <Glyph name="timer" />
                    </span>
                    <div class="wh">
                      <div class="ln">
                        <span class="name">{one.key ?? 'timer'}</span>
                        <span>timer is set</span>
                        {due !== null && (
                          <span class="meta">
                            for <Time at={due} />
                          </span>
                        )}
                      </div>
                    </div>
                    <span class="tp" />
                  </li>
                )
              })}
              {letters.map((one) => (
                <li class="n-row" key={one.id}>
                  <span class="at" />
                  <span class="mk">
                    <Glyph name={one.status === 'dead' ? 'dead' : 'off'} />
                  </span>
                  <div class="wh">
                    <div class="ln">
                      <To class="name" to={`dead-letters?letter=${one.id}`}>
                        {one.event_type}
                      </To>
                      <span>
                        {one.kind} is a dead letter, {one.status}
                      </span>
                    </div>
                    <p class="why">
                      <code>{one.error.code ?? one.error.name}</code> {one.error.message}
                    </p>
                  </div>
                  <span class="tp" />
                </li>
              ))}
            </ol>
            {events.length === 0 && (
              <Empty>This instance has no event: it never began, or retention removed its history.</Empty>
            )}
            {events.length === 500 && <Section title="Older events" note="the newest 500 are shown" />}
          </>
        )
      }}
    </Waiting>
  )
}
