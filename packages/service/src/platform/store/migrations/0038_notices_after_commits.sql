-- The statements that write deliveries notify the streams after the commit.
DROP TRIGGER webhook_deliveries_changed ON webhook_deliveries;
DROP FUNCTION notify_webhook_deliveries();
