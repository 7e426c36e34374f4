/** Codes of failures that lie in this host and not in the one it calls. */
const LOCAL: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EAI_MEMORY', 'EAI_SYSTEM'])

/** No name server answered, whichever name it was asked for. */
export const NAME_SERVER_AWAY = 'NAME_SERVER_AWAY'

export function isLocalFault(code: string): boolean {
  return code === NAME_SERVER_AWAY || LOCAL.has(code)
}
