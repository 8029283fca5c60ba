"""The HTTP listener: metrics, health, the JSON API and the console. Imported only where `rota.http.listener` is set."""
