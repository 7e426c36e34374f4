/** A process that runs the code under test: it can be killed, stand still, and lose its connections. */
import type { ProcessLock } from '../../src/postgres/index.ts'
import { LEASE_MS } from '../../src/processes/index.ts'
import { checkDelay, sleepBy } from '../../src/runtime/clock.ts'
import type { Clock } from '../../src/runtime/index.ts'
import type { Store } from './database/store.ts'
import type { World } from './world.ts'

const BEGAN = Date.UTC(2030, 0, 1)

export class Process {
  readonly name: string
  readonly world: World
  readonly clock: Clock
  /** Nothing of it runs any more. */
  isDead = false
  /** It reaches no server until then. */
  cutUntil = 0
  readonly #store: Store
  #pausedUntil = 0
  #holdsLock = false
  #gained = 0
  #lacksSince = 0

  constructor(name: string, world: World, store: Store) {
    this.name = name
    this.world = world
    this.#store = store
    this.clock = {
      now: () => new Date(BEGAN + world.now),
      monotonic: () => world.now,
      sleep: (ms, signal) => sleepBy(this.clock.setTimer, ms, signal),
      setTimer: (ms, callback) =>
        checkDelay(ms) === Number.POSITIVE_INFINITY ? () => {} : this.after(checkDelay(ms), callback),
    }
    this.#gainLock()
  }

  get isPaused(): boolean {
    return this.world.now < this.#pausedUntil
  }

  /** As `World.after`, in this process: never once it is dead, and not while it stands still. */
  after(ms: number, run: () => void): () => void {
    let cancel = () => {}
    const fire = () => {
      if (this.isDead) return
      if (this.isPaused) cancel = this.world.after(this.#pausedUntil - this.world.now, fire)
      else run()
    }
    cancel = this.world.after(ms, fire)
    return () => cancel()
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.world.now + ms)
  }

  /** `lockMs`: for so long the server keeps its connections. */
  die(lockMs: number): void {
    if (this.isDead) return
    this.isDead = true
    this.world.after(lockMs, () => this.#store.locks.delete(this.name))
  }

  get lock(): ProcessLock {
    const holds = this.#holdsLock
    const lacks = !holds && this.world.now - this.#lacksSince > LEASE_MS
    return { holds, possible: true, gained: this.#gained, lacks, key: holds ? this.name : null }
  }

  /** The connection that holds the lock is gone; the process notices after `noticeMs` and gains it again after `backMs`. */
  loseLock(noticeMs: number, backMs: number): void {
    this.#store.locks.delete(this.name)
    this.after(noticeMs, () => {
      this.#holdsLock = false
      this.#lacksSince = this.world.now
      this.after(backMs, () => this.#gainLock())
    })
  }

  #gainLock(): void {
    if (this.#holdsLock) return
    this.#holdsLock = true
    this.#gained++
    this.#store.locks.add(this.name)
  }
}
