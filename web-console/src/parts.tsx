/** The parts that pages are made of. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, act, type Mark, type State } from './api.ts'
import { clock, fullTime, layOut } from './format.ts'
import { type Loaded, mayAct, useShared, whyNot } from './state.tsx'

const GLYPHS: Readonly<Record<State, string>> = {
  done: 'done',
  running: 'run',
  waiting: 'wait',
  scheduled: 'timer',
  retrying: 'retry',
  paused: 'pause',
  queued: 'wait',
  parked: 'parked',
  dead: 'dead',
  redriving: 'retry',
  discarded: 'off',
  not_yet: 'wait',
  skipped: 'skip',
  unrecorded: 'quiet',
}

export const WORDS: Readonly<Record<State, string>> = {
  done: 'done',
  running: 'is running',
  waiting: 'waits',
  scheduled: 'is set for later',
  retrying: 'failed and is tried again',
  paused: 'is paused',
  queued: 'waits for the action before it',
  parked: 'is parked',
  dead: 'is a dead letter',
  redriving: 'is being redriven',
  discarded: 'was given up',
  not_yet: 'was not begun yet',
  skipped: 'was skipped by an operator',
  unrecorded: 'has no record',
}

export function Glyph({ name }: { name: string }) {
  return (
    <svg class={`g g-${name}`} viewBox="0 0 12 12" aria-hidden="true">
      <use href={`#g-${name}`} />
    </svg>
  )
}

export function StateGlyph({ state }: { state: State }) {
  return <Glyph name={GLYPHS[state]} />
}

export function Head({
  title,
  sentence,
  crumb,
  children,
}: {
  title: ComponentChildren
  sentence?: ComponentChildren
  crumb?: ComponentChildren
  children?: ComponentChildren
}) {
  return (
    <div class="head">
      <div class="words">
        {crumb && <p class="crumb">{crumb}</p>}
        <h1>{title}</h1>
        {sentence && <p class="verdict">{sentence}</p>}
      </div>
      {children && <div class="tools">{children}</div>}
    </div>
  )
}

export function Section({
  title,
  note,
  more,
  children,
}: {
  title: ComponentChildren
  note?: ComponentChildren
  more?: ComponentChildren
  children?: ComponentChildren
}) {
  return (
    <section class="sec">
      <div class="top">
        <h2>{title}</h2>
        {note !== undefined && <span class="faint">{note}</span>}
        {more !== undefined && <span class="more">{more}</span>}
      </div>
      {children}
    </section>
  )
}

/** A link inside of the console. */
export function To({
  to,
  class: name,
  children,
  current,
}: {
  to: string
  class?: string
  children: ComponentChildren
  current?: boolean
}) {
  return (
    <a class={name} href={to} aria-current={current ? 'page' : undefined}>
      {children}
    </a>
  )
}

export function Time({ at }: { at: string | null | undefined }) {
  const { form, now } = useShared()
  if (at == null) return <span class="faint">–</span>
  return (
    <time dateTime={at} title={fullTime(at, now)}>
      {clock(at, form, now)}
    </time>
  )
}

/** The command that does the same as an act; it can be copied whatever the role. */
export function Command({ text, children }: { text: string; children?: ComponentChildren }) {
  const [copied, setCopied] = useState(false)
  const copy = () => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true)
      setTimeout(() => setCopied(false), 1_500)
    })
  }
  return (
    <div class="cmd">
      <code>{text}</code>
      {children}
      <button class="btn s bare" type="button" onClick={copy} aria-label={`Copy: ${text}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}

/** A button that changes something: off with a reason for those who may not, and its error beside it. */
export function Act({
  label,
  path,
  body,
  first,
  harm,
  small,
  onDone,
}: {
  label: string
  path: string
  body?: object
  first?: boolean
  harm?: boolean
  small?: boolean
  onDone?: (answer: Record<string, unknown>) => void
}) {
  const shared = useShared()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      onDone?.(await act(path, body ?? {}))
    } catch (failure) {
      setError(failure instanceof ApiError ? failure.message : String(failure))
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <button
        class={`btn${first ? ' first' : ''}${harm ? ' harm' : ''}${small ? ' s' : ''}`}
        type="button"
        disabled={busy || !mayAct(shared)}
        title={whyNot(shared)}
        onClick={run}
      >
        {label}
      </button>
      {error !== undefined && (
        <span class="t-dead" role="alert">
          {error}
        </span>
      )}
    </>
  )
}

/** The fate of an event, one mark per reaction: bars for what is done, shapes for trouble. */
export function Strip({ marks }: { marks: readonly Mark[] }) {
  if (marks.length === 0) return <span class="faint">–</span>
  const shown = marks.slice(0, 24)
  const width = shown.length * 7
  const counts = new Map<string, number>()
  for (const { state } of marks) counts.set(WORDS[state], (counts.get(WORDS[state]) ?? 0) + 1)
  const words = [...counts].map(([word, count]) => `${count} ${word}`).join(', ')
  return (
    <span title={marks.map(({ name, state }) => `${name} ${WORDS[state]}`).join('\n')}>
      <svg class="strip" viewBox={`0 0 ${width} 12`} width={width} height="12" role="img" aria-label={words}>
        {shown.map(({ state }, at) => (
          <MarkShape key={at} state={state} x={at * 7} />
        ))}
      </svg>
      {marks.length > 24 && <span class="faint"> +{marks.length - 24}</span>}
    </span>
  )
}

function MarkShape({ state, x }: { state: State; x: number }) {
  if (state === 'done') return <rect class="p-done" x={x + 1} y="1" width="3" height="10" />
  if (state === 'running') return <rect class="p-run" x={x + 1} y="3" width="3" height="8" />
  if (state === 'dead') return <rect class="p-dead" x={x} y="3" width="6" height="6" />
  if (state === 'scheduled') return <circle class="p-set" cx={x + 3} cy="6" r="2" />
  if (state === 'discarded' || state === 'skipped' || state === 'unrecorded')
    return <rect class="p-skip" x={x + 1} y="8" width="3" height="3" />
  return <circle class="p-wait" cx={x + 3} cy="6" r="2.3" />
}

/** In the place of an answer: what it is waiting for, or what went wrong and what to do. */
export function Waiting<T>({ from, children }: { from: Loaded<T>; children: (value: T) => ComponentChildren }) {
  const { value, error } = from
  if (value !== undefined) {
    return (
      <>
        {error !== undefined && <Fault error={error} />}
        {children(value)}
      </>
    )
  }
  return error === undefined ? (
    <p class="wait-note" aria-live="polite">
      Reading…
    </p>
  ) : (
    <Fault error={error} />
  )
}

export function Fault({ error }: { error: ApiError }) {
  const isAway = error.status === 503 || error.status === 0
  return (
    <div class="fault" role="alert">
      <h2>{isAway ? 'The database or the server does not answer' : error.code}</h2>
      <p>{error.message}</p>
      {isAway && <p class="dim">Committed events are kept. This page reads again by itself.</p>}
    </div>
  )
}

export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {command !== undefined && <Command text={command} />}
    </div>
  )
}

export function Json({ value, label }: { value: unknown; label: string }) {
  return (
    <pre class="code" role="region" tabIndex={0} aria-label={label}>
      {layOut(value)}
    </pre>
  )
}

/** Opens a row by click or Enter; links inside of it keep their own way. */
export function rowProps(open: () => void) {
  return {
    tabIndex: 0,
    onClick: (event: MouseEvent) => {
      if ((event.target as Element).closest('a, button, input') === null) open()
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === 'Enter' && event.target === event.currentTarget) open()
    },
  }
}

/** A question in place: what follows from it, and the number typed from 100 things on. */
export function Ask({
  title,
  points,
  confirm,
  harm,
  count,
  onGo,
  onCancel,
}: {
  title: string
  points: readonly string[]
  confirm: string
  harm?: boolean
  count: number
  onGo: (reason: string) => Promise<void>
  onCancel: () => void
}) {
  const [reason, setReason] = useState('')
  const [typed, setTyped] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string>()
  const mustType = harm === true && count >= 100
  const go = async () => {
    setBusy(true)
    try {
      await onGo(reason)
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure))
      setBusy(false)
    }
  }
  return (
    <form
      class="ask"
      onSubmit={(event) => {
        event.preventDefault()
        void go()
      }}
    >
      <h3>{title}</h3>
      <ul>
        {points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
      <div class="go">
        <label class="field">
          Reason, for the audit
          <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        {mustType && (
          <label class="field">
            Type {count} to go on
            <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        )}
      </div>
      <div class="go">
        <button
          class={`btn ${harm ? 'harm' : 'first'}`}
          type="submit"
          disabled={busy || (mustType && typed !== String(count))}
        >
          {confirm}
        </button>
        <button class="btn" type="button" onClick={onCancel}>
          Cancel
        </button>
        {error !== undefined && (
          <span class="t-dead" role="alert">
            {error}
          </span>
        )}
      </div>
    </form>
  )
}
