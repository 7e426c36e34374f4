/** A logger for graphile-worker that says nothing. */
export const quiet = { scope: () => quiet, error() {}, warn() {}, info() {}, debug() {} }
