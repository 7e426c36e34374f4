/**
 * The console: a Fetch handler with a page and the JSON behind it, for any server and any path. It reads and acts through
 * the public interface of an instance, so it can do nothing that a program could not do, and each act is audited.
 *
 * Start with console.ts (what a request passes through), then routes.ts (every request that is answered, and for whom).
 */
export type { ConsoleAccess, ConsoleRole, ConsoleUser } from './access.ts'
export { type Console, type ConsoleOptions, createConsole } from './console.ts'
export { type ServeConsoleOptions, type ServedConsole, serveConsole } from './serve.ts'
