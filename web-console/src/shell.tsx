/** The frame of every page: navigation, status line, palette, keys, and which page the address names. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, act, type LogStatus, openStream, read, type Session } from './api.ts'
import { keep, kept, number, type TimeForm, timeForm } from './format.ts'
import { Audit } from './pages/audit.tsx'
import { Database } from './pages/database.tsx'
import { DeadLetters } from './pages/dead-letters.tsx'
import { Deliveries } from './pages/deliveries.tsx'
import { EventPage } from './pages/event.tsx'
import { Events } from './pages/events.tsx'
import { Observers } from './pages/observers.tsx'
import { Overview } from './pages/overview.tsx'
import { Subscriptions } from './pages/subscriptions.tsx'
import { Workflow, Workflows } from './pages/workflows.tsx'
import { Keys, Palette } from './palette.tsx'
import { Fault, Glyph, To } from './parts.tsx'
import { PAGES } from './places.ts'
import { type Place, type Shared, SharedContext } from './state.tsx'
import { Symbols } from './symbols.tsx'

const base = new URL(document.baseURI).pathname

function placeNow(): Place {
  const path = decodeURI(location.pathname).slice(base.length).replace(/\/$/, '')
  return { path, query: new URLSearchParams(location.search) }
}

export function App() {
  const [session, setSession] = useState<Session>()
  const [error, setError] = useState<ApiError>()
  const [place, setPlace] = useState(placeNow)
  const enter = useCallback(() => {
    setError(undefined)
    read<Session>('session').then(setSession, (failure) =>
      setError(failure instanceof ApiError ? failure : new ApiError(0, 'NO_ANSWER', 'The server did not answer.')),
    )
  }, [])
  useEffect(enter, [])
  useEffect(() => {
    const onPop = () => setPlace(placeNow())
    addEventListener('popstate', onPop)
    return () => removeEventListener('popstate', onPop)
  }, [])
  const go = useCallback((to: string, { replace = false }: { replace?: boolean } = {}) => {
    const url = new URL(to, document.baseURI)
    history[replace ? 'replaceState' : 'pushState'](null, '', url)
    setPlace(placeNow())
    if (!replace) scrollTo(0, 0)
  }, [])
  useEffect(() => {
    const onClick = (event: MouseEvent) => {
      const link = (event.target as Element).closest?.('a')
      if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || link.target) return
      const url = new URL(link.href)
      if (url.origin !== location.origin || !url.pathname.startsWith(base) || link.hash !== '') return
      event.preventDefault()
      go(url.href)
    }
    addEventListener('click', onClick)
    return () => removeEventListener('click', onClick)
  }, [go])
  if (session !== undefined) {
    return (
      <>
        <Symbols />
        <Frame session={session} place={place} go={go} signedOut={() => setSession(undefined)} />
      </>
    )
  }
  return (
    <>
      <Symbols />
      {error?.status === 401 ? (
        <SignIn onDone={enter} />
      ) : error ? (
        <div class="main">
          <Fault error={error} />
        </div>
      ) : null}
    </>
  )
}

function SignIn({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState('')
  const [error, setError] = useState<string>()
  const submit = async (event: Event) => {
    event.preventDefault()
    try {
      await act('sign-in', { token })
      onDone()
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure))
    }
  }
  return (
    <main class="sign" id="main">
      <span class="brand">
        <svg viewBox="0 0 18 18" aria-hidden="true">
          <use href="#mark" />
        </svg>
        aftercommit
      </span>
      <h1>Sign in</h1>
      <form class="stack" onSubmit={submit}>
        <label class="field">
          Token
          <input
            type="password"
            value={token}
            autoComplete="current-password"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {error !== undefined && (
          <p class="t-dead" role="alert">
            {error}
          </p>
        )}
        <p>
          <button class="btn first" type="submit">
            Sign in
          </button>
        </p>
      </form>
      <p class="faint">The token is what the console was started with: AFTERCOMMIT_CONSOLE_TOKEN.</p>
    </main>
  )
}

interface FrameProps {
  session: Session
  place: Place
  go: Shared['go']
  signedOut: () => void
}

export type Connection = 'live' | 'lost' | 'down'

function Frame({ session, place, go, signedOut }: FrameProps) {
  const [status, setStatus] = useState<LogStatus>()
  const [connection, setConnection] = useState<Connection>('lost')
  const [form, setForm] = useState<TimeForm>(timeForm)
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    return openStream(false, {
      status(next) {
        setStatus(next)
        setConnection('live')
      },
      events() {},
      down: () => setConnection('down'),
      lost: () => setConnection('lost'),
    })
  }, [])
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), form === 'ago' ? 1_000 : 15_000)
    return () => clearInterval(timer)
  }, [form])
  const chooseForm = (next: TimeForm) => {
    setForm(next)
    keep('time', next)
  }
  const shared = useMemo<Shared>(
    () => ({ session, place, status, form, now, go, signedOut }),
    [session, place, status, form, now, go, signedOut],
  )
  const nextForm = () => chooseForm(form === 'utc' ? 'local' : form === 'local' ? 'ago' : 'utc')
  useEffect(() => {
    document.title = `${titleOf(place)} · aftercommit`
  }, [place.path])
  return (
    <SharedContext.Provider value={shared}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Navigation shared={shared} form={form} chooseForm={chooseForm} />
      <main class="main" id="main">
        <PageOf place={place} />
      </main>
      <Foot status={status} connection={connection} />
      <Palette go={go} />
      <Keys go={go} nextForm={nextForm} />
    </SharedContext.Provider>
  )
}

function PageOf({ place: { path } }: { place: Place }) {
  const [page = '', ...rest] = path.split('/').map(decodeURIComponent)
  switch (page) {
    case '':
      return <Overview />
    case 'events':
      return rest.length > 0 ? <EventPage id={rest.join('/')} /> : <Events />
    case 'subscriptions':
      return <Subscriptions />
    case 'observers':
      return <Observers />
    case 'workflows':
      return rest.length >= 2 ? <Workflow type={rest[0]!} id={rest.slice(1).join('/')} /> : <Workflows />
    case 'deliveries':
      return <Deliveries />
    case 'dead-letters':
      return <DeadLetters />
    case 'database':
      return <Database />
    case 'audit':
      return <Audit />
    default:
      return (
        <>
          <h1>There is no such page</h1>
          <p>
            <To to="./">Overview</To>
          </p>
        </>
      )
  }
}

function titleOf({ path }: Place): string {
  const [page = '', ...rest] = path.split('/')
  const name = PAGES.find(([known]) => known === page)?.[1] ?? 'Not found'
  return rest.length > 0 ? `${decodeURIComponent(rest.join('/'))} · ${name}` : name
}

function Navigation({
  shared,
  form,
  chooseForm,
}: {
  shared: Shared
  form: TimeForm
  chooseForm: (form: TimeForm) => void
}) {
  const { session, place, status } = shared
  const [isOpen, setOpen] = useState(false)
  const current = place.path.split('/')[0]
  useEffect(() => setOpen(false), [place.path])
  const badges: Record<string, { count: number; glyph: string; tone: string }> = {
    'dead-letters': { count: status?.badges.dead_letters ?? 0, glyph: 'dead', tone: 't-dead' },
    deliveries: { count: status?.badges.destinations ?? 0, glyph: 'open', tone: 't-wait' },
    subscriptions: { count: status?.badges.subscriptions ?? 0, glyph: 'pause', tone: 't-idle' },
  }
  const item = ([path, name]: (typeof PAGES)[number]) => {
    const badge = badges[path]
    return (
      <li key={path}>
        <To to={path === '' ? './' : path} current={current === path}>
          {name}
          {badge !== undefined && badge.count > 0 && (
            <span class={`n ${badge.tone}`}>
              <Glyph name={badge.glyph} />
              {badge.count > 1_000 ? '1,000+' : badge.count}
            </span>
          )}
        </To>
      </li>
    )
  }
  const production = session.environment === 'production'
  return (
    <header class="nav">
      <a class="brand" href="./">
        <svg viewBox="0 0 18 18" aria-hidden="true">
          <use href="#mark" />
        </svg>
        aftercommit
      </a>
      {session.environment !== null && (
        <div class={`env${production ? ' prod' : ''}`}>
          <b>{session.environment}</b>
        </div>
      )}
      <button class="find" type="button" onClick={() => dispatchEvent(new Event('find'))}>
        <span>
          Find<span class="opt"> or do</span>
        </span>{' '}
        <kbd>⌘K</kbd>
      </button>
      <button class="btn menu" type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Menu
      </button>
      <nav aria-label="Pages">
        <ul>{PAGES.slice(0, 5).map(item)}</ul>
        <ul>{PAGES.slice(5, 7).map(item)}</ul>
        <ul>{PAGES.slice(7).map(item)}</ul>
      </nav>
      <div class="me">
        <span>
          <span class="mono">{session.who}</span> · {session.role}
          {session.read_only && ' · read-only'}
        </span>
        <div class="switches">
          <div class="seg" role="group" aria-label="Time">
            {(['utc', 'local', 'ago'] as const).map((one) => (
              <button key={one} type="button" aria-pressed={form === one} onClick={() => chooseForm(one)}>
                {one === 'utc' ? 'UTC' : one}
              </button>
            ))}
          </div>
        </div>
        <ThemeSwitch />
      </div>
    </header>
  )
}

function ThemeSwitch() {
  const [theme, setTheme] = useState(() => kept('theme') ?? 'auto')
  useEffect(() => {
    if (theme === 'auto') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme
    keep('theme', theme === 'auto' ? null : theme)
  }, [theme])
  return (
    <div class="switches">
      <div class="seg" role="group" aria-label="Theme">
        {['auto', 'light', 'dark'].map((one) => (
          <button key={one} type="button" aria-pressed={theme === one} onClick={() => setTheme(one)}>
            {one}
          </button>
        ))}
      </div>
    </div>
  )
}

function Foot({ status, connection }: { status: LogStatus | undefined; connection: Connection }) {
  const holder = status?.holders[0]
  const words: Record<Connection, string> = { live: 'live', lost: 'not connected', down: 'database down' }
  const latest = useRef<LogStatus | undefined>(undefined)
  if (status) latest.current = status
  const shown = latest.current
  return (
    <footer class="foot" role="contentinfo" aria-label="The log right now">
      <span>
        <Glyph name={connection === 'live' ? 'run' : 'dead'} /> <b>{words[connection]}</b>
      </span>
      {shown && (
        <span>
          frontier <b>{number(shown.frontier)}</b>
        </span>
      )}
      {shown && <span class="opt">head {number(shown.head)}</span>}
      {holder && (
        <span>
          <Glyph name="wait" /> <b>{status!.holders.length === 1 ? '1 holder' : `${status!.holders.length} holders`}</b>{' '}
          {Math.round(holder.age_seconds ?? 0)} s
        </span>
      )}
      {shown && <span class="opt">epoch {shown.epoch}</span>}
      {shown && <span class="opt">{shown.processes === 1 ? '1 process' : `${shown.processes} processes`}</span>}
      {shown && <span class="opt">postgres {shown.server}</span>}
      <span class="opt end">? keys</span>
    </footer>
  )
}
