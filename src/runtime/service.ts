/**
 * The one shape of everything that runs for long. `start` resolves when the part runs, not when it is done. `stop`
 * resolves when the part has ended; it may be called at any time, before `start` and more than once.
 */
export interface Service {
  readonly name: string
  readonly state: ServiceState
  start(): Promise<void>
  stop(): Promise<void>
}

export type ServiceState = 'idle' | 'starting' | 'running' | 'restarting' | 'stopping' | 'stopped'
