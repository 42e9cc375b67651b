import { useState } from 'react';
import { Button } from '../../parts/controls.tsx';

/** Shows a button that asks the browser to allow notifications, which the shell then shows while the page is hidden. */
export function AskForNotifications() {
  const [permission, setPermission] = useState(
    typeof Notification === 'undefined' ? 'denied' : Notification.permission,
  );
  if (permission !== 'default') return null;
  return (
    <Button icon="bell" onClick={() => void Notification.requestPermission().then(setPermission)}>
      Notify me
    </Button>
  );
}
