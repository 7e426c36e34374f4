/** Collects what is wrong with an action, so that everything is reported at once and not one thing per attempt. */
import { AftercommitError } from '../../errors.ts'
import { ObserverError } from '../observer-error.ts'

type Path = readonly (string | number)[]

/** Every mistake found while an action was prepared; the first one speaks for all where only one can be told. */
class PrepareError extends ObserverError {
  readonly mistakes: readonly ObserverError[]

  constructor(mistakes: readonly [ObserverError, ...ObserverError[]]) {
    const [first, ...others] = mistakes
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`
    super(first.code, first.message + more, { path: first.path, cause: first.cause })
    this.mistakes = mistakes
  }
}

export interface Mistakes {
  /** What `make` returns. If it throws, the mistake is kept for `throwIfAny`, and the value must not be used before. */
  at<T>(path: Path, make: () => T): T
  add(path: Path, message: string): void
  throwIfAny(): void
}

export function createMistakes(): Mistakes {
  const found: ObserverError[] = []
  return {
    at<T>(path: Path, make: () => T): T {
      try {
        return make()
      } catch (error) {
        found.push(located(path, error))
        return undefined as T
      }
    },
    add: (path, message) => void found.push(new ObserverError('OB012', message, { path })),
    throwIfAny() {
      const [first, ...others] = found
      if (first !== undefined) throw new PrepareError([first, ...others])
    },
  }
}

/** Errors of templates know their line and column; they stay in `cause`. Anything that is no error of ours is a bug. */
function located(path: Path, error: unknown): ObserverError {
  if (error instanceof ObserverError) {
    const { message, transient, cause } = error
    return new ObserverError(error.code, message, { transient, path: [...path, ...error.path], cause })
  }
  if (!(error instanceof AftercommitError)) throw error
  return new ObserverError(error.code === 'OB003' ? 'OB003' : 'OB012', error.message, { path, cause: error })
}
