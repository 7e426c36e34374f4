/** How far a client has come: the token it resumes after, kept over a reload where there is a place for it. */
export interface TokenStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
}

export interface Progress {
  readonly token: string | undefined
  /** Whether an event was not seen before. Without a token nobody can tell, so it is new. */
  isNew(token: string | undefined): boolean
  /** Never back within one history. */
  advance(token: string): void
  /** To wherever the server says, after everything was loaded anew. */
  reset(token: string): void
  save(): void
}

export function createProgress(from: string | undefined, storage: TokenStorage | undefined, key: string): Progress {
  let token = from ?? read(storage, key)
  let saved = token

  return {
    get token() {
      return token
    },
    isNew: (next) => next === undefined || token === undefined || isBeyond(next, token),
    advance(next) {
      if (token === undefined || isBeyond(next, token)) token = next
    },
    reset(next) {
      token = next
    },
    save() {
      if (token === undefined || token === saved) return
      saved = token
      try {
        storage?.setItem(key, token)
      } catch {
        // Full, or forbidden: then nothing survives a reload, and nothing else is lost.
      }
    },
  }
}

/** `epoch.position`. In another epoch a position says nothing about the old one: the server has made sure that it fits. */
function isBeyond(next: string, token: string): boolean {
  const [epoch, position] = split(next)
  const [oldEpoch, oldPosition] = split(token)
  return epoch !== oldEpoch || position > oldPosition
}

function split(token: string): [string, bigint] {
  const [, epoch = '', position = '0'] = /^(\d+)\.(\d+)$/.exec(token) ?? []
  return [epoch, BigInt(position)]
}

function read(storage: TokenStorage | undefined, key: string): string | undefined {
  try {
    const kept = storage?.getItem(key)
    return typeof kept === 'string' && /^\d+\.\d+$/.test(kept) ? kept : undefined
  } catch {
    return undefined
  }
}
