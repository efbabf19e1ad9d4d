// Reads the link that the run has printed: its fragment has the token and the role.

// The fragment stays in the address, so that a reload and a bookmark go on working. No server is told it.
export function readLink(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ''));
  return {token: given.get('token') ?? '', role: given.get('role') === 'watch' ? 'watch' : 'steer'};
}
