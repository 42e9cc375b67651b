import { Page } from '../../frame/page.tsx';

export function AutomationScreen() {
  return <Page title="AutomationScreen">{null}</Page>;
}
