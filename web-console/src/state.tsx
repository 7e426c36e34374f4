/** What every page shares: who looks, where, in which form of time, and what the stream last said. */
import { createContext } from 'preact'
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, type LogStatus, read, type Session } from './api.ts'
import type { TimeForm } from './format.ts'

export interface Place {
  /** The page and what follows it: `events`, `events/42`. */
  readonly path: string
  readonly query: URLSearchParams
}

export interface Shared {
  readonly session: Session
  readonly place: Place
  readonly status: LogStatus | undefined
  readonly form: TimeForm
  readonly now: number
  /** Names the page in the title. */
  go(to: string, options?: { replace?: boolean }): void
  signedOut(): void
}

export const SharedContext = createContext<Shared | undefined>(undefined)

export function useShared(): Shared {
  const shared = useContext(SharedContext)
  if (shared === undefined) throw new Error('outside of the shell')
  return shared
}

export function mayAct({ session }: Shared): boolean {
  return session.role !== 'viewer' && !session.read_only
}

/** Why an act is off, as the button says it. */
export function whyNot({ session }: Shared): string | undefined {
  if (session.read_only) return 'This console changes nothing.'
  return session.role === 'viewer' ? 'This needs the role operator.' : undefined
}

export interface Loaded<T> {
  readonly value: T | undefined
  readonly error: ApiError | undefined
  reload(): void
}

/** Reads again when the path changes and every `everyMs`; what was there stays until the answer is here. */
export function useRead<T>(path: string | undefined, everyMs = 0): Loaded<T> {
  const { signedOut } = useShared()
  const [state, setState] = useState<{
    path?: string | undefined
    value?: T | undefined
    error?: ApiError | undefined
  }>({})
  const [round, setRound] = useState(0)
  const latest = useRef(path)
  latest.current = path
  useEffect(() => {
    if (path === undefined) return
    const over = new AbortController()
    read<T>(path, over.signal).then(
      (value) => over.signal.aborted || setState({ path, value }),
      (error) => {
        if (over.signal.aborted) return
        const known = error instanceof ApiError ? error : new ApiError(0, 'NO_ANSWER', 'The server did not answer.')
        if (known.status === 401) return signedOut()
        setState((before) => ({ ...(before.path === path ? before : { path }), error: known }))
      },
    )
    return () => over.abort()
  }, [path, round])
  useEffect(() => {
    if (everyMs === 0) return
    const timer = setInterval(() => document.visibilityState === 'visible' && setRound((n) => n + 1), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  const reload = useCallback(() => setRound((n) => n + 1), [])
  return { value: state.path === path ? state.value : undefined, error: state.error, reload }
}
