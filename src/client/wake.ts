/** Tells when a page that slept or was offline is there again. Outside a browser it never does. */
export function onWake(wake: (certain: boolean) => void): () => void {
  const page = globalThis as unknown as Partial<Listens> & { document?: Listens & { visibilityState: string } }
  const { document } = page
  // What comes over a new network does not come over an old connection.
  const online = () => wake(true)
  const shown = () => document?.visibilityState !== 'hidden' && wake(false)
  page.addEventListener?.('online', online)
  page.addEventListener?.('pageshow', shown)
  document?.addEventListener('visibilitychange', shown)
  document?.addEventListener('resume', shown)
  return () => {
    page.removeEventListener?.('online', online)
    page.removeEventListener?.('pageshow', shown)
    document?.removeEventListener('visibilitychange', shown)
    document?.removeEventListener('resume', shown)
  }
}

interface Listens {
  addEventListener(type: string, listener: () => void): void
  removeEventListener(type: string, listener: () => void): void
}
